import { AsyncResource } from 'node:async_hooks';

/** A scheduled call, and its place in the queue's linked list. */
export interface ScheduledCall {
  readonly dueAt: number;
  readonly onDue: () => void;
  previous: ScheduledCall;
  next: ScheduledCall;
}

/** Returns whether the event loop was blocked when a timer of `dueAt` should have run: it runs over 50 ms late. */
export function wasBlocked(dueAt: number): boolean {
  return performance.now() - dueAt > 50;
}

/**
 * A timer queue for one duration. Equal delays expire in the order they were set, so one Node timer serves all of
 * them: a timer per delivery cost as much as everything else in `receive` except validation. With `keepAlive: false`
 * the queue does not keep the process alive.
 *
 * With `extendsWhenBlocked: true`, calls whose time passes while the event loop is blocked wait for the duration once
 * more. Meanwhile this process could neither send a command nor read its reply, so a healthy server would look silent.
 *
 * `onDue` must not throw. It runs in the async context of the queue: a caller that needs its own must restore it.
 */
export class TimerQueue {
  readonly #ms: number;
  readonly #keepAlive: boolean;
  readonly #extendsWhenBlocked: boolean;
  /** Sentinel of the circular list. */
  readonly #sentinel: ScheduledCall;
  /** Left running, unref'd, when the queue is empty: the next call will need it. */
  #timer: NodeJS.Timeout | undefined;
  #timerDueAt = 0;
  /** The timer serves all deliveries, so it must not keep the async context of the delivery that started it. */
  readonly #context = new AsyncResource('transfer-callbacks:timer');

  constructor(ms: number, { keepAlive = true, extendsWhenBlocked = false } = {}) {
    this.#ms = ms;
    this.#keepAlive = keepAlive;
    this.#extendsWhenBlocked = extendsWhenBlocked;
    const sentinel = { dueAt: Infinity, onDue: () => undefined } as unknown as ScheduledCall;
    this.#sentinel = sentinel.previous = sentinel.next = sentinel;
  }

  /**
   * Calls `onDue` after the queue's duration, unless `clear` is called first. Pass `now` if it is known: reading the
   * clock twelve times per delivery cost a tenth of the time of `receive`.
   */
  set(onDue: () => void, now = performance.now()): ScheduledCall {
    const sentinel = this.#sentinel;
    if (this.#timer === undefined) this.#startTimer(this.#ms);
    else if (this.#keepAlive && sentinel.next === sentinel) this.#timer.ref();
    const call = { dueAt: now + this.#ms, onDue, previous: sentinel.previous, next: sentinel };
    sentinel.previous = sentinel.previous.next = call;
    return call;
  }

  /** Cancels the call. Does nothing if it has run or was cancelled before. */
  clear(call: ScheduledCall): void {
    call.previous.next = call.next;
    call.next.previous = call.previous;
    // Makes a second `clear` a no-op.
    call.previous = call.next = call;
    if (this.#sentinel.next === this.#sentinel) this.#timer?.unref();
  }

  #startTimer(afterMs: number, onTimeout = this.#onTimeout): void {
    this.#timerDueAt = performance.now() + afterMs;
    this.#timer = this.#context.runInAsyncScope(() => setTimeout(onTimeout, afterMs));
    if (!this.#keepAlive) this.#timer.unref();
  }

  readonly #onTimeout = (): void => {
    const isEmpty = this.#sentinel.next === this.#sentinel;
    if (this.#extendsWhenBlocked && !isEmpty && wasBlocked(this.#timerDueAt)) {
      this.#startTimer(this.#ms, this.#runNextTurn);
    } else {
      this.#runNextTurn();
    }
  };

  readonly #runNextTurn = (): void => {
    // After a long task, Node runs timers before it reads sockets. Without this turn of the event loop, a store call
    // whose reply has already reached the socket would count as late.
    setImmediate(this.#runDueCalls);
  };

  readonly #runDueCalls = (): void => {
    const now = performance.now();
    const sentinel = this.#sentinel;
    for (let first = sentinel.next; first.dueAt <= now; first = sentinel.next) {
      this.clear(first);
      first.onDue();
    }
    this.#timer = undefined;
    if (sentinel.next !== sentinel) this.#startTimer(Math.ceil(sentinel.next.dueAt - now));
  };
}

/**
 * Settles as `call` does, or rejects with `lateError()` if that takes longer than the queue's duration. The call then
 * continues, and `onLateValue` gets the value that it resolves with, in the async context of the caller. `call` may
 * also throw, or return a plain value.
 */
export function settleWithin<T>(
  queue: TimerQueue,
  call: () => T | PromiseLike<T>,
  lateError: () => unknown,
  onLateValue?: (value: T) => void,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const reply = Promise.resolve(call());
    let isLate = false;
    const timer = queue.set(() => {
      isLate = true;
      // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- the reason of an abort may be anything.
      reject(lateError());
    });
    reply.then(
      (value) => {
        queue.clear(timer);
        if (isLate) onLateValue?.(value);
        else resolve(value);
      },
      (error: unknown) => {
        queue.clear(timer);
        // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- passed on as it came.
        reject(error);
      },
    );
  });
}

/** Resolves after `ms`. With `keepAlive: false` the pause does not keep the process alive. */
export function pause(ms: number, { keepAlive = true } = {}): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    if (!keepAlive) timer.unref();
  });
}
