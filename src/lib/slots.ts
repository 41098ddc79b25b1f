/** Limits how many tasks run at the same time. */
export class Slots {
  #free: number;
  readonly #urgent = new Set<() => void>();
  readonly #normal = new Set<() => void>();

  constructor(size: number) {
    this.#free = size;
  }

  waiting({ urgent }: { urgent: boolean }): number {
    return (urgent ? this.#urgent : this.#normal).size;
  }

  /**
   * Waits for a slot and takes it, in the order of the calls, but urgent ones first. Rejects with the signal's reason
   * if that aborts before.
   */
  async take(signal?: AbortSignal, { urgent = false } = {}): Promise<void> {
    signal?.throwIfAborted();
    if (this.#free > 0) {
      this.#free -= 1;
      return;
    }
    const line = urgent ? this.#urgent : this.#normal;
    await new Promise<void>((resolve, reject) => {
      const proceed = (): void => {
        line.delete(proceed);
        signal?.removeEventListener('abort', giveUp);
        resolve();
      };
      const giveUp = (): void => {
        line.delete(proceed);
        reject(signal?.reason as Error);
      };
      line.add(proceed);
      signal?.addEventListener('abort', giveUp, { once: true });
    });
  }

  /** Frees a slot, or passes it on to the next in line. */
  release(): void {
    const [next] = this.#urgent.size > 0 ? this.#urgent : this.#normal;
    if (next === undefined) this.#free += 1;
    else next();
  }
}
