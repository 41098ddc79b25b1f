import { vi } from 'vitest';
import {
  memoryStore,
  transferCallbackReceiver,
  type CallbackStore,
  type Lease,
  type ReceiverOptions,
  type TransferCallbackReceiver,
} from 'transfer-callbacks';

/** A receiver on a memory store whose handlers do nothing, except for what `options` say. */
export function receiverOf(options: Partial<ReceiverOptions> = {}): TransferCallbackReceiver {
  return transferCallbackReceiver({
    store: memoryStore(),
    onSuccess: () => undefined,
    onFailed: () => undefined,
    logger: false,
    ...options,
  });
}

/** `store` with some of its calls replaced. */
export function storeWith(
  changes: { claim?: CallbackStore['claim']; lease?: (lease: Lease) => Partial<Lease>; transactional?: boolean },
  store: CallbackStore = memoryStore(),
): CallbackStore {
  return {
    ...(changes.transactional === undefined ? {} : { transactional: changes.transactional }),
    async claim(key, request) {
      const claim = await (changes.claim ?? store.claim.bind(store))(key, request);
      if (claim.state !== 'claimed') return claim;
      return { ...claim, lease: { ...claim.lease, ...changes.lease?.(claim.lease) } };
    },
  };
}

/** A promise and its ends. */
export function later<T = void>(): {
  promise: Promise<T>;
  resolve: (value: T) => void;
  reject: (why: unknown) => void;
} {
  let resolve: (value: T) => void = () => undefined;
  let reject: (why: unknown) => void = () => undefined;
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}

export const never = (): Promise<never> => new Promise(() => undefined);

/** Fakes the clocks that the receiver and the memory store go by. */
export function fakeClock(): void {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] });
}
