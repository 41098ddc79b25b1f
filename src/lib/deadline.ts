/**
 * How much longer a call of the store may take once its time has passed, in milliseconds. While the event loop is
 * blocked, this process can neither send a command nor read its reply: a healthy store would look silent.
 */
export const graceMs = 50;

/** A timer of Node is an object. On the web, and on Workers of an older date, it is a number without methods. */
export type Timer = NodeJS.Timeout | number;

/** Calls `onDue` after `ms`, unless `clearTimeout` is called before. The timer does not keep the process alive. */
export function setBackgroundTimer(onDue: () => void, ms: number): Timer {
  const timer = setTimeout(onDue, ms);
  (timer as Partial<NodeJS.Timeout>).unref?.();
  return timer;
}

/**
 * Calls `onTurn` when the event loop has read its sockets. Without `setImmediate`, as in jsdom, it waits for a timer
 * instead. Returns the function that cancels it.
 */
export function setTurn(onTurn: () => void): () => void {
  if (typeof setImmediate === 'undefined') {
    const timer = setTimeout(onTurn, 0);
    return () => {
      clearTimeout(timer);
    };
  }
  const turn = setImmediate(onTurn);
  return () => {
    clearImmediate(turn);
  };
}

/** What a deadline belongs to. */
export interface Due {
  /** Called when the time is up. */
  onDue(): void;
}

/**
 * Calls `onDue` after `ms`, and not before the event loop has read its sockets once more: after a long task, Node runs
 * timers first, and a reply that has arrived would count as late. With `moreMs` it then does the same once more for
 * that time. An object without closures, because each delivery has several.
 */
export class Deadline {
  readonly #owner: Due;
  #moreMs: number;
  #timer: Timer;
  #cancelTurn: (() => void) | undefined;

  constructor(owner: Due, ms: number, moreMs = 0) {
    this.#owner = owner;
    this.#moreMs = moreMs;
    this.#timer = setTimeout(Deadline.#letRead, ms, this);
  }

  cancel(): void {
    clearTimeout(this.#timer);
    this.#cancelTurn?.();
  }

  static readonly #letRead = (deadline: Deadline): void => {
    deadline.#cancelTurn = setTurn(() => {
      deadline.#end();
    });
  };

  #end(): void {
    const moreMs = this.#moreMs;
    this.#moreMs = 0;
    if (moreMs > 0) this.#timer = setTimeout(Deadline.#letRead, moreMs, this);
    else this.#owner.onDue();
  }
}

/** How long a call may take, and what becomes of it after that. */
interface Limits<T> {
  readonly ms: number;
  /** How much longer it may take, each time after the event loop has read its sockets. */
  readonly moreMs?: number;
  readonly lateError: (ms: number) => unknown;
  /** Gets what a late call resolves with. */
  readonly onLateValue?: ((value: T) => void) | undefined;
}

/**
 * Resolves or rejects as `call` does. If that takes longer than its limits, it rejects with `lateError(ms)`, and the
 * call continues. `call` may also throw, or return a plain value.
 */
export function callWithin<T>(call: () => T | PromiseLike<T>, limits: Limits<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const reply = Promise.resolve(call());
    const limited = new LimitedCall(limits, resolve, reject);
    reply.then(
      (value) => {
        limited.resolve(value);
      },
      (error: unknown) => {
        limited.reject(error);
      },
    );
  });
}

class LimitedCall<T> implements Due {
  readonly #limits: Limits<T>;
  readonly #resolve: (value: T) => void;
  readonly #reject: (error: unknown) => void;
  readonly #deadline: Deadline;
  #isLate = false;

  constructor(limits: Limits<T>, resolve: (value: T) => void, reject: (error: unknown) => void) {
    this.#limits = limits;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#deadline = new Deadline(this, limits.ms, limits.moreMs);
  }

  onDue(): void {
    this.#isLate = true;
    this.#reject(this.#limits.lateError(this.#limits.ms));
  }

  resolve(value: T): void {
    this.#deadline.cancel();
    if (this.#isLate) this.#limits.onLateValue?.(value);
    else this.#resolve(value);
  }

  reject(error: unknown): void {
    this.#deadline.cancel();
    this.#reject(error);
  }
}

/** A signal that aborts at a deadline. */
interface DeadlineSignal {
  readonly signal: AbortSignal;
  /** Must be called when the signal is no longer needed. */
  readonly clear: () => void;
}

/** Makes a signal that aborts when `outer` does, and after `timeoutMs` with `timeoutError()`. */
export function deadlineSignal(
  timeoutMs: number,
  outer: AbortSignal | undefined,
  timeoutError: () => Error = () => new DOMException(`No response within ${timeoutMs} ms.`, 'TimeoutError'),
): DeadlineSignal {
  // Not AbortSignal.any: on Node 20 it leaks memory on a signal that outlives the task.
  const controller = new AbortController();
  const abort = (): void => {
    controller.abort(outer?.reason);
  };
  const onDue = (): void => {
    controller.abort(timeoutError());
  };
  const deadline = new Deadline({ onDue }, timeoutMs);
  outer?.addEventListener('abort', abort);
  if (outer?.aborted) abort();
  return {
    signal: controller.signal,
    clear() {
      deadline.cancel();
      outer?.removeEventListener('abort', abort);
    },
  };
}

/**
 * Resolves or rejects as `task(signal)` does, or rejects with the signal's reason when it aborts. The task may go on.
 */
export async function withDeadline<T>(
  { signal, clear }: DeadlineSignal,
  task: (signal: AbortSignal) => T | PromiseLike<T>,
): Promise<T> {
  try {
    return await new Promise<T>((resolve, reject) => {
      const giveUp = (): void => {
        reject(signal.reason as Error);
      };
      if (signal.aborted) giveUp();
      else signal.addEventListener('abort', giveUp);
      Promise.resolve(task(signal)).then(resolve, reject);
    });
  } finally {
    clear();
  }
}

/** Resolves after `ms`, or when `signal` aborts. With `keepAlive: false` the pause does not keep the process alive. */
export function pause(
  ms: number,
  { signal, keepAlive = true }: { signal?: AbortSignal | undefined; keepAlive?: boolean } = {},
): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = keepAlive ? setTimeout(end, ms) : setBackgroundTimer(end, ms);
    signal?.addEventListener('abort', end);
    if (signal?.aborted) end();
  });
}
