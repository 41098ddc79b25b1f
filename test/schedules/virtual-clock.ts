/** What a clock must know of the process that sets a timer. */
export interface TimerOwner {
  /** Timers of a process that is dead or held up do not run. */
  readonly isAwake: boolean;
  /** Notes what the process has seen: the code in it depends on nothing else. */
  see(event: string): void;
}

interface VirtualTimer {
  readonly dueAt: number;
  readonly call: () => void;
  readonly owner: TimerOwner;
  /** What does not keep its process alive may still find work to do. */
  readonly unref: () => void;
}

/**
 * Time that passes only when it is told to. The code of one process runs at a time, and until nothing of it is left to
 * run before something new happens, so that `owner` is the process of every timer that is set.
 */
export class VirtualClock {
  now = 0;
  #owner: TimerOwner | undefined;
  readonly #immediates = new Set<() => void>();
  readonly #timers = new Set<VirtualTimer>();

  /** Runs `call` as code of `owner`, and all that follows from it without further events. */
  async run(owner: TimerOwner, call: () => void): Promise<void> {
    this.#owner = owner;
    call();
    for (const immediate of [...this.#immediates]) if (this.#immediates.delete(immediate)) immediate();
    // Node empties its microtasks before it calls what `nextTick` is given: no promise is left that could run.
    await new Promise<void>((resolve) => {
      process.nextTick(resolve);
    });
    if (this.#immediates.size > 0) throw new Error('Only a timer may call setImmediate.');
    this.#owner = undefined;
  }

  /** When the next timer of an awake process is due. `Infinity` if there is none. */
  nextDueAt(): number {
    let dueAt = Infinity;
    for (const timer of this.#timers) if (timer.owner.isAwake) dueAt = Math.min(dueAt, timer.dueAt);
    return dueAt;
  }

  async runDueTimers(): Promise<void> {
    const due = [...this.#timers].filter(({ dueAt }) => dueAt <= this.now).sort((a, b) => a.dueAt - b.dueAt);
    for (const timer of due) {
      // An earlier one may have cleared it, and a process may have ended.
      if (!timer.owner.isAwake || !this.#timers.delete(timer)) continue;
      timer.owner.see('timer');
      await this.run(timer.owner, timer.call);
    }
  }

  /**
   * Runs `main` with the clock in the place of Node's. `main` must not wait for Node's event loop: then nothing else in
   * this process ever meets the virtual clock.
   */
  async replaceGlobals<T>(main: () => Promise<T>): Promise<T> {
    const { setTimeout, clearTimeout, setImmediate, clearImmediate } = globalThis;
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    Object.assign(globalThis, {
      setTimeout: this.#setTimeout,
      clearTimeout: (timer: VirtualTimer) => this.#timers.delete(timer),
      // No function is given twice, so that it is its own handle.
      setImmediate: (call: () => void) => {
        this.#immediates.add(call);
        return call;
      },
      clearImmediate: (call: () => void) => this.#immediates.delete(call),
    });
    Object.assign(performance, { now: () => this.now });
    try {
      return await main();
    } finally {
      Error.stackTraceLimit = stackTraceLimit;
      Object.assign(globalThis, { setTimeout, clearTimeout, setImmediate, clearImmediate });
      // What is left is Node's own, on the prototype.
      Reflect.deleteProperty(performance, 'now');
    }
  }

  readonly #setTimeout = (call: () => void, ms: number): VirtualTimer => {
    if (this.#owner === undefined) throw new Error('A timer was set outside of every process.');
    // As Node: whole milliseconds, at least 1.
    const dueAt = this.now + Math.max(1, Math.trunc(ms));
    const timer = { dueAt, call, owner: this.#owner, unref: () => undefined };
    this.#timers.add(timer);
    return timer;
  };
}
