import { AsyncResource } from 'node:async_hooks';

/** A scheduled call, and its place in the queue's linked list. */
export interface ScheduledCall {
  dueAt: number;
  readonly onDue: () => void;
  previous: ScheduledCall;
  next: ScheduledCall;
}

/** How long a call may wait for its reply after the event loop was blocked, at least, in milliseconds. */
export const graceMs = 50;

/**
 * Returns whether a call that was due at `dueAt` is over 50 ms late, because the event loop was blocked. A loop that is
 * only busy runs it some milliseconds late.
 */
export function wasBlocked(dueAt: number, now = performance.now()): boolean {
  return now - dueAt > graceMs;
}

/**
 * A timer queue for one duration. Equal delays expire in the order they were set, so one Node timer serves all of
 * them: a timer per delivery cost as much as everything else in `receive` except validation. With `keepAlive: false`
 * the queue does not keep the process alive.
 *
 * With `extendsOnce: true`, a call that is due waits once more: for the duration if the event loop was blocked when its
 * time passed, and for `graceMs` otherwise. While the loop is blocked, this process can neither send a command nor read
 * its reply. So a healthy server would look silent, even if the block ended shortly before that time.
 *
 * `onDue` must not throw. It runs in the async context of the queue: a caller that needs its own must restore it.
 */
export class TimerQueue {
  /** The duration, in milliseconds. */
  readonly ms: number;
  readonly #keepAlive: boolean;
  /** The queues of extended calls. A list stays in order only if all of its delays are equal. */
  readonly #extended: { readonly byDuration: TimerQueue; readonly byGrace: TimerQueue } | undefined;
  /** Sentinel of the circular list. */
  readonly #sentinel: ScheduledCall;
  /** Left running, unref'd, when the queue is empty: the next call will need it. */
  #timer: NodeJS.Timeout | undefined;
  /** The timer serves all deliveries, so it must not keep the async context of the delivery that started it. */
  readonly #context = new AsyncResource('transfer-callbacks:timer');

  constructor(ms: number, { keepAlive = true, extendsOnce = false } = {}) {
    this.ms = ms;
    this.#keepAlive = keepAlive;
    if (extendsOnce) this.#extended = { byDuration: new TimerQueue(ms), byGrace: new TimerQueue(graceMs) };
    const sentinel = { dueAt: Infinity, onDue: () => undefined } as unknown as ScheduledCall;
    this.#sentinel = sentinel.previous = sentinel.next = sentinel;
  }

  /**
   * Calls `onDue` after the queue's duration, unless `clear` is called first. Pass `now` if it is known: reading the
   * clock twelve times per delivery cost a tenth of the time of `receive`.
   */
  set(onDue: () => void, now = performance.now()): ScheduledCall {
    const sentinel = this.#sentinel;
    const call = { dueAt: now + this.ms, onDue, previous: sentinel, next: sentinel };
    this.#append(call);
    return call;
  }

  /** Cancels the call. Does nothing if it has run or was cancelled before. */
  clear(call: ScheduledCall): void {
    call.previous.next = call.next;
    call.next.previous = call.previous;
    // Makes a second `clear` a no-op.
    call.previous = call.next = call;
    this.#unrefIfEmpty();
  }

  /** Adds a call at the end: one that is set now is due after all others. */
  #append(call: ScheduledCall): void {
    const sentinel = this.#sentinel;
    if (this.#timer === undefined) this.#startTimer(this.ms);
    else if (this.#keepAlive) this.#timer.ref();
    call.previous = sentinel.previous;
    call.next = sentinel;
    sentinel.previous = sentinel.previous.next = call;
  }

  /** Lets the process end if no call is left. The last one may have been in a queue of extended calls. */
  #unrefIfEmpty(): void {
    if (this.#sentinel.next !== this.#sentinel) return;
    this.#timer?.unref();
    if (this.#extended === undefined) return;
    this.#extended.byDuration.#unrefIfEmpty();
    this.#extended.byGrace.#unrefIfEmpty();
  }

  #startTimer(afterMs: number): void {
    this.#timer = this.#context.runInAsyncScope(() => setTimeout(this.#onTimeout, afterMs));
    if (!this.#keepAlive) this.#timer.unref();
  }

  readonly #onTimeout = (): void => {
    // After a long task, Node runs timers before it reads sockets. Without this turn of the event loop, a store call
    // whose reply has already reached the socket would count as late.
    setImmediate(this.#runDueCalls);
  };

  readonly #runDueCalls = (): void => {
    const now = performance.now();
    const sentinel = this.#sentinel;
    const later = wasBlocked(sentinel.next.dueAt, now) ? this.#extended?.byDuration : this.#extended?.byGrace;
    for (let first = sentinel.next; first.dueAt <= now; first = sentinel.next) {
      this.clear(first);
      if (later === undefined) first.onDue();
      else later.#extend(first, now);
    }
    this.#timer = undefined;
    if (sentinel.next !== sentinel) this.#startTimer(Math.ceil(sentinel.next.dueAt - now));
  };

  #extend(call: ScheduledCall, now: number): void {
    call.dueAt = now + this.ms;
    this.#append(call);
  }
}

/**
 * Settles as `call` does, or rejects with `lateError(ms)` if that takes longer than the queue's duration. The call then
 * continues, and `onLateValue` gets the value that it resolves with, in the async context of the caller. `call` may
 * also throw, or return a plain value.
 */
export function settleWithin<T>(
  queue: TimerQueue,
  call: () => T | PromiseLike<T>,
  lateError: (ms: number) => unknown,
  onLateValue: (value: T) => void = () => undefined,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const reply = Promise.resolve(call());
    let isLate = false;
    const timer = queue.set(() => {
      isLate = true;
      // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- the reason of an abort may be anything.
      reject(lateError(queue.ms));
    });
    reply.then(
      (value) => {
        queue.clear(timer);
        if (isLate) onLateValue(value);
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
