interface Deadline {
  readonly signal: AbortSignal;
  /** Must be called when the signal is no longer needed. */
  readonly clear: () => void;
}

/** A signal that aborts when `outer` does, and after `timeoutMs` with `timeoutError()`. */
export function deadlineSignal(
  timeoutMs: number,
  outer: AbortSignal | undefined,
  timeoutError: () => Error = () => new DOMException(`No response within ${timeoutMs} ms.`, 'TimeoutError'),
): Deadline {
  // Not AbortSignal.any: on Node 20 it leaks memory on a signal that outlives the task.
  const controller = new AbortController();
  const abort = (): void => {
    // Stryker disable next-line OptionalChaining: Equal: only `outer` calls this.
    controller.abort(outer?.reason);
  };
  const timer = setTimeout(() => {
    controller.abort(timeoutError());
  }, timeoutMs);
  outer?.addEventListener('abort', abort);
  if (outer?.aborted) abort();
  return {
    signal: controller.signal,
    clear() {
      clearTimeout(timer);
      outer?.removeEventListener('abort', abort);
    },
  };
}

/** Settles like `task(signal)`, but rejects with the signal's reason when it aborts, even if the task goes on. */
export async function withDeadline<T>(
  { signal, clear }: Deadline,
  task: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  try {
    return await new Promise<T>((resolve, reject) => {
      const giveUp = (): void => {
        reject(signal.reason as Error);
      };
      if (signal.aborted) giveUp();
      else signal.addEventListener('abort', giveUp);
      task(signal).then(resolve, reject);
    });
  } finally {
    clear();
  }
}

/** Resolves after `ms`, or when `signal` aborts. */
export function pauseUnlessAborted(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener('abort', end);
    if (signal?.aborted) end();
  });
}
