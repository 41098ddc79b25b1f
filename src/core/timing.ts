import { TransferCallbackError } from './errors.js';

/** Settles as `call` does, or rejects with STORE_TIMEOUT after `timeoutMs`; `call` itself goes on. */
export function withinStoreDeadline<T>(timeoutMs: number, call: PromiseLike<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      reject(new TransferCallbackError('STORE_TIMEOUT', `The store did not answer within ${timeoutMs} ms.`));
    }, timeoutMs);
    const inTime = (): void => {
      clearTimeout(timer);
    };
    call.then(resolve, reject);
    call.then(inTime, inTime);
  });
}

/** Resolves after `ms`. With `keepAlive: false` a process that has nothing else to do may end meanwhile. */
export function pause(ms: number, { keepAlive = true } = {}): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    if (!keepAlive) timer.unref();
  });
}
