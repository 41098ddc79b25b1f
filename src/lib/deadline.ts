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

/**
 * Resolves when each socket that has failed is known to have ended. Node emits `error` first, fails what was sent, and
 * emits `close` one turn later.
 */
export async function waitForSockets(): Promise<void> {
  for (let turns = 0; turns < 2; turns += 1) await new Promise<void>((resolve) => setTurn(resolve));
}

/**
 * Calls `onDue` after `ms`, and not before the event loop has read its sockets once more: after a long task, Node runs
 * timers first, and a reply that has arrived would count as late. With `moreMs` it then does the same once more for
 * that time. Returns the function that cancels it.
 */
export function setDeadline(ms: number, onDue: () => void, moreMs = 0): () => void {
  const extend = (): void => {
    cancel = setDeadline(moreMs, onDue);
  };
  const timer = setTimeout(() => {
    cancel = setTurn(moreMs > 0 ? extend : onDue);
  }, ms);
  let cancel = (): void => {
    clearTimeout(timer);
  };
  return () => {
    cancel();
  };
}

/**
 * Resolves or rejects as `reply` does. If that takes longer than `ms` and, after that, `moreMs`, it rejects with
 * `lateError(ms)`, and `onLateValue` gets the value of the late reply.
 */
export function waitWithin<T>(
  ms: number,
  reply: T | PromiseLike<T>,
  lateError: (ms: number) => unknown,
  { moreMs = 0, onLateValue }: { moreMs?: number; onLateValue?: ((value: T) => void) | undefined } = {},
): Promise<T> {
  return new Promise((resolve, reject) => {
    let isLate = false;
    const cancel = setDeadline(
      ms,
      () => {
        isLate = true;
        // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- the reason of an abort may be anything.
        reject(lateError(ms));
      },
      moreMs,
    );
    Promise.resolve(reply).then(
      (value) => {
        cancel();
        if (isLate) onLateValue?.(value);
        else resolve(value);
      },
      (error: unknown) => {
        cancel();
        // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- passed on as it came.
        reject(error);
      },
    );
  });
}

/**
 * Makes a signal that aborts when `outer` does, and after `timeoutMs` with `timeoutError()`. Call `clear` when the
 * signal is no longer needed.
 */
export function deadlineSignal(
  timeoutMs: number,
  outer: AbortSignal | undefined,
  timeoutError: () => Error = () => new DOMException(`No response within ${timeoutMs} ms.`, 'TimeoutError'),
): { signal: AbortSignal; clear: () => void } {
  // Not AbortSignal.any: on Node 20 it leaks memory on a signal that outlives the task.
  const controller = new AbortController();
  const abort = (): void => {
    controller.abort(outer?.reason);
  };
  const cancel = setDeadline(timeoutMs, () => {
    controller.abort(timeoutError());
  });
  outer?.addEventListener('abort', abort);
  if (outer?.aborted) abort();
  return {
    signal: controller.signal,
    clear() {
      cancel();
      outer?.removeEventListener('abort', abort);
    },
  };
}

/**
 * Resolves or rejects as `task(signal)` does, or rejects with the signal's reason when it aborts. The task may go on.
 */
export async function withDeadline<T>(
  { signal, clear }: ReturnType<typeof deadlineSignal>,
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
