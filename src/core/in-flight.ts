import { AsyncResource } from 'node:async_hooks';
import { setDeadline, withDeadline } from '../lib/deadline.js';

/**
 * Work on a callback that `close` waits for. A held claim has all members, a call of `confirm` has `abort`, and a
 * function of `afterCommit` only the id.
 */
export interface Work {
  readonly id: string;
  /** Its key in the store, while a handler runs or its success is recorded. */
  readonly key?: string;
  /** How long its handler has been running, in milliseconds. `undefined` if no handler runs. */
  readonly handlerMs?: number | undefined;
  /** Aborts the signal of the running function, if it has one. */
  abort?(reason: Error): void;
  /** Gives up what can be given up. */
  finish?(): void;
}

/** Its listeners run in the async context of the delivery that made it, although `close` aborts all deliveries. */
export class DeliveryAborter extends AbortController {
  readonly #context = new AsyncResource('transfer-callbacks:delivery');

  override abort(reason: Error): void {
    this.#context.runInAsyncScope(() => {
      super.abort(reason);
    });
  }
}

/** Counts what `close()` waits for: deliveries without an outcome, held claims, and functions of `afterCommit`. */
export class InFlight {
  #count = 0;
  #onIdle: () => void = () => undefined;
  // An array, not a Set: V8 keeps a Set's outgrown tables, and the deliveries in them, until a major GC.
  readonly #work: Work[] = [];
  #reason: Error | undefined;

  begin(): void {
    this.#count += 1;
  }

  end(): void {
    this.#count -= 1;
    if (this.#count === 0) this.#onIdle();
  }

  add(work: Work): void {
    this.#work.push(work);
    this.begin();
  }

  remove(work: Work): void {
    this.#work.splice(this.#work.indexOf(work), 1);
    this.end();
  }

  /**
   * Resolves or rejects as `call(signal)` does. After `timeoutMs`, or when the receiver closes, the signal aborts and
   * this rejects with its reason.
   */
  async call<T>(
    id: string,
    timeoutMs: number,
    lateError: () => Error,
    call: (signal: AbortSignal) => T | PromiseLike<T>,
  ): Promise<T> {
    const work = Object.assign(new DeliveryAborter(), { id });
    const clear = setDeadline(timeoutMs, () => {
      work.abort(lateError());
    });
    this.add(work);
    try {
      return await withDeadline({ signal: work.signal, clear }, call);
    } finally {
      this.remove(work);
    }
  }

  /** Returns whether a call was ended by `abortAll`. */
  wasAborted(error: unknown): boolean {
    return this.#reason !== undefined && error === this.#reason;
  }

  abortAll(reason: Error): void {
    this.#reason = reason;
    for (const work of [...this.#work]) work.abort?.(reason);
  }

  /** Finishes the remaining work, and returns the ids of its callbacks. */
  finishAll(): string[] {
    const left = [...this.#work];
    for (const work of left) work.finish?.();
    return left.map(({ id }) => id);
  }

  /** Returns how long a handler of the callback has been running in this process, or `undefined` if none is. */
  handlerMs(key: string): number | undefined {
    return this.#work.find((running) => running.key === key && running.handlerMs !== undefined)?.handlerMs;
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
