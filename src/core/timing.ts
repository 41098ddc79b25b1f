import { TransferCallbackError } from './errors.js';

/** Settles as `call` does, or rejects with STORE_TIMEOUT after `timeoutMs`; `call` itself goes on. */
export async function withinStoreDeadline<T>(timeoutMs: number, call: PromiseLike<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      reject(new TransferCallbackError('STORE_TIMEOUT', `The store did not answer within ${timeoutMs} ms.`));
    }, timeoutMs);
  });
  try {
    return await Promise.race([call, deadline]);
  } finally {
    clearTimeout(timer);
  }
}

/** Resolves after `ms`. With `keepAlive: false` a process that has nothing else to do may end meanwhile. */
export function pause(ms: number, { keepAlive = true } = {}): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    if (!keepAlive) timer.unref();
  });
}
