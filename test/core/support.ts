import { expect, onTestFinished, vi } from 'vitest';
import { z } from 'zod/v4';
import {
  memoryStore,
  transferCallbackReceiver,
  transferCallbackSchema,
  type CallbackStore,
  type Claim,
  type ClaimRequest,
  type HandlerContext,
  type ReceiverOptions,
  type TransferCallback,
  type TransferCallbackReceiver,
} from 'transfer-callbacks';
import { defineService } from 'transfer-callbacks/client';

/** The documented callbacks, and two other events. */
export const otherService = defineService({
  payload: z.union([
    transferCallbackSchema,
    z.looseObject({ type: z.enum(['charge.paid', 'payout.pending']), data: z.looseObject({ id: z.string() }) }),
  ]),
  read(payload) {
    const { id, ...data } = payload.data as { id: string; externalId?: string; amount?: number; currency?: string };
    return { ...data, id, state: 'type' in payload ? payload.type : payload.event };
  },
  states: {
    ...{ 'transfer.success': 'SUCCESS', 'transfer.failed': 'FAILED' },
    ...{ 'charge.paid': 'OTHER', 'payout.pending': 'OTHER' },
  },
});

type Given<Tx> = Partial<Omit<ReceiverOptions<TransferCallback, Tx>, 'store' | 'onOther'>> & {
  store?: CallbackStore<Tx>;
  onOther?: unknown;
};

/** A receiver on a memory store whose handlers do nothing, except for what `options` say. */
export function receiverOf<Tx = undefined>(options: Given<Tx> = {}): TransferCallbackReceiver<TransferCallback, Tx> {
  return transferCallbackReceiver({
    store: memoryStore(),
    onSuccess: () => undefined,
    onFailed: () => undefined,
    logger: false,
    ...options,
  } as ReceiverOptions<TransferCallback, Tx>);
}

/** `store` with some of its calls replaced. */
export function storeWith<Store extends CallbackStore = ReturnType<typeof memoryStore>>(
  changes: {
    claim?: CallbackStore['claim'];
    granted?: (claim: Claim, request: ClaimRequest) => Partial<Claim>;
    transactional?: boolean;
  },
  store = memoryStore() as CallbackStore as Store,
): Store {
  const { claim = store.claim.bind(store), granted, ...rest } = changes;
  return {
    ...store,
    ...rest,
    async claim(key, request) {
      const reply = await claim(key, request);
      if (reply.state !== 'claimed') return reply;
      return { ...reply, claim: { ...reply.claim, ...granted?.(reply.claim, request) } };
    },
  };
}

/** `store` whose claims get their reply once `wait` has ended. */
export function slowStore(wait: () => Promise<unknown>, store = memoryStore()): typeof store {
  return storeWith({ claim: async (key, request) => wait().then(() => store.claim(key, request)) }, store);
}

/** A handler that runs until it is told to end, and the signal that it got. */
export function runUntilTold() {
  const { promise, resolve, reject } = later();
  const run = {
    resolve,
    reject,
    signal: undefined as AbortSignal | undefined,
    onSuccess: vi.fn((_callback: unknown, { signal }: HandlerContext) => {
      run.signal = signal;
      return promise;
    }),
  };
  return run;
}

/** What a call throws. */
export function thrownBy(call: () => unknown): unknown {
  try {
    call();
  } catch (error) {
    return error;
  }
  return expect.fail('it did not throw');
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

/** Lets the event loop call what was due before, on the clock of `fakeClock`. */
export async function turn(): Promise<void> {
  await vi.advanceTimersByTimeAsync(0);
  await new Promise(setImmediate);
}

export const never = (): Promise<never> => new Promise(() => undefined);

/**
 * Fakes the clocks that the receiver and the memory store go by, until the test has finished. They do not begin at 0,
 * where a time of the clock and the time that has passed would be equal, and no test would see which of them the code
 * takes.
 */
export function fakeClock(): void {
  onTestFinished(() => void vi.useRealTimers());
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] });
  vi.advanceTimersByTime(1_000);
}

/** Notes the timers that are set from now on. Returns whether each timer of this length keeps the process alive. */
export function noteTimers(): (ms: number) => boolean[] {
  const set = vi.spyOn(globalThis, 'setTimeout');
  onTestFinished(() => {
    set.mockRestore();
  });
  return (ms) =>
    set.mock.results.flatMap(({ value }, index) =>
      set.mock.calls[index]?.[1] === ms ? [(value as NodeJS.Timeout).hasRef()] : [],
    );
}
