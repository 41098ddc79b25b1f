/** Work that a closing receiver can end early. */
export interface Abortable {
  /** The id of the callback. */
  readonly id: string;
  /** How long its handler has been running, in milliseconds. `undefined` if no handler runs. */
  readonly handlerMs?: number | undefined;
  /** Aborts the signal of the running function. */
  abort(reason: Error): void;
  /** Stops all work on it. */
  finish(): void;
}

/** Counts what `close()` waits for: deliveries without an outcome, and leases that are still in use. */
export class InFlight {
  #count = 0;
  #onIdle: () => void = () => undefined;
  // An array, not a Set: V8 keeps a Set's outgrown tables, and the deliveries in them, until a major GC.
  readonly #abortables: Abortable[] = [];

  begin(): void {
    this.#count += 1;
  }

  end(): void {
    this.#count -= 1;
    if (this.#count === 0) this.#onIdle();
  }

  /** Adds work that can be aborted, until `remove`. */
  add(abortable: Abortable): void {
    this.#abortables.push(abortable);
    this.begin();
  }

  remove(abortable: Abortable): void {
    this.#abortables.splice(this.#abortables.indexOf(abortable), 1);
    this.end();
  }

  abortAll(reason: Error): void {
    for (const abortable of [...this.#abortables]) abortable.abort(reason);
  }

  /** Finishes the remaining work, and returns the ids of its callbacks. */
  finishAll(): string[] {
    const left = [...this.#abortables];
    for (const abortable of left) abortable.finish();
    return left.map(({ id }) => id);
  }

  /** Returns how long a handler of the callback has been running in this process, or `undefined` if none is. */
  handlerMs(id: string): number | undefined {
    return this.#abortables.find((running) => running.id === id && running.handlerMs !== undefined)?.handlerMs;
  }

  /** Resolves when nothing is in flight, or after `ms`. */
  async waitUntilIdle(ms: number): Promise<void> {
    if (this.#count === 0) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#onIdle = () => {
        clearTimeout(timer); // A pending timer would keep the process alive.
        resolve();
      };
    });
  }
}
