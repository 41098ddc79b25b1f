// What a handler is given, and what comes of a delivery. Nothing here runs: `types.test.ts` compiles it, against the types of Express 5 and 4.
import { expectTypeOf } from 'vitest';
import { z } from 'zod';
import {
  memoryStore,
  TransferCallbackError,
  transferCallbackListener,
  transferCallbackReceiver,
  transferCallbackRouter,
  type CallbackStore,
  type HandlerContext,
  type TransferCallback,
  type TransferCallbackOutcome,
  type TransferCallbackReceiver,
  type TransferFailed,
  type TransferSucceeded,
} from 'transfer-callbacks';
import { transferService } from 'transfer-callbacks/client';
import type { Issue } from '../../src/lib/standard-schema.js';
import type { TransferCallbackFacts } from '../../src/core/facts.js';
import type { OutcomeName } from '../../src/core/outcomes.js';
import type { TransferCallbackErrorCode } from '../../src/lib/errors.js';

const store = memoryStore();
const nothing = (): undefined => undefined;

// Each handler sees its own half of the callback.
transferCallbackReceiver({
  store,
  onSuccess(callback, context) {
    expectTypeOf(callback).toEqualTypeOf<TransferSucceeded>();
    expectTypeOf(callback.event).toEqualTypeOf<'transfer.success'>();
    expectTypeOf(callback.data.status).toEqualTypeOf<'SUCCESS'>();
    expectTypeOf(callback.data.failureReason).toEqualTypeOf<null>();
    expectTypeOf(callback.data.amount).toEqualTypeOf<number>();
    expectTypeOf(context).toEqualTypeOf<HandlerContext>();
    expectTypeOf(context.tx).toEqualTypeOf<undefined>();
    expectTypeOf(context.signal).toEqualTypeOf<AbortSignal>();
  },
  onFailed(callback) {
    expectTypeOf(callback).toEqualTypeOf<TransferFailed>();
    expectTypeOf(callback.event).toEqualTypeOf<'transfer.failed'>();
    expectTypeOf(callback.data.status).toEqualTypeOf<'FAILED'>();
    expectTypeOf(callback.data.failureReason).toEqualTypeOf<string | null>();
  },
});

// A handler may be a function with types of its own, and does not narrow the other one.
async function markPaid(callback: TransferSucceeded, { signal }: HandlerContext): Promise<void> {
  signal.throwIfAborted();
  await Promise.resolve(callback.data.amount);
}
transferCallbackRouter({
  store,
  onSuccess: markPaid,
  verify: (_request, callback) => callback?.event === 'transfer.failed' && callback.data.failureReason !== null,
  onFailed(callback) {
    expectTypeOf(callback).toEqualTypeOf<TransferFailed>();
  },
});
transferCallbackListener({
  store,
  onSuccess: (callback: TransferCallback) => callback.event,
  onFailed: (callback: TransferCallback) => callback.event,
});
// @ts-expect-error -- it is never called for a success.
transferCallbackReceiver({ store, onSuccess: nothing, onFailed: markPaid });

// The payment method tells which of the two destinations is there.
transferCallbackReceiver({
  store,
  onSuccess({ data }) {
    expectTypeOf(data.walletNumber).toEqualTypeOf<string | null>();
    expectTypeOf(data.bankAccount).toEqualTypeOf<Record<string, unknown> | null>();
    if (data.paymentMethod === 'bank') {
      expectTypeOf(data.bankAccount).toEqualTypeOf<Record<string, unknown>>();
      expectTypeOf(data.walletNumber).toEqualTypeOf<null>();
    } else {
      expectTypeOf(data.paymentMethod).toEqualTypeOf<'mobile_money'>();
      expectTypeOf(data.walletNumber).toEqualTypeOf<string>();
      expectTypeOf(data.bankAccount).toEqualTypeOf<null>();
    }
  },
  onFailed({ data }) {
    if (data.paymentMethod === 'mobile_money') {
      expectTypeOf(data.walletNumber).toEqualTypeOf<string>();
      expectTypeOf(data.bankAccount).toEqualTypeOf<null>();
    } else {
      expectTypeOf(data.bankAccount).toEqualTypeOf<Record<string, unknown>>();
      expectTypeOf(data.walletNumber).toEqualTypeOf<null>();
    }
  },
});

// `confirm` and the callback as a whole are the union, narrowed on `event`.
transferCallbackReceiver({
  store,
  confirm(callback, { signal }) {
    expectTypeOf(callback).toEqualTypeOf<TransferCallback>();
    expectTypeOf(signal).toEqualTypeOf<AbortSignal>();
    if (callback.event === 'transfer.success') expectTypeOf(callback).toEqualTypeOf<TransferSucceeded>();
    else expectTypeOf(callback).toEqualTypeOf<TransferFailed>();
    return true;
  },
  onSuccess: nothing,
  onFailed: nothing,
});

// A schema of one's own gives its type to the handlers, to `confirm` and to the verifiers.
const facts = z.object({ id: z.string(), externalId: z.string(), amount: z.string(), currency: z.string() });
const amountsAsText = z.discriminatedUnion('event', [
  z.object({
    event: z.literal('transfer.success'),
    data: facts.extend({ status: z.literal('SUCCESS'), feeAmount: z.string() }),
  }),
  z.object({
    event: z.literal('transfer.failed'),
    data: facts.extend({ status: z.literal('FAILED'), failureCode: z.number() }),
  }),
]);
transferCallbackRouter({
  store,
  service: transferService({ payload: amountsAsText }),
  verify(_request, callback) {
    expectTypeOf(callback).toEqualTypeOf<z.infer<typeof amountsAsText> | undefined>();
    return true;
  },
  confirm(callback) {
    expectTypeOf(callback).toEqualTypeOf<z.infer<typeof amountsAsText>>();
    return true;
  },
  onSuccess({ data }) {
    expectTypeOf(data.amount).toEqualTypeOf<string>();
    expectTypeOf(data.feeAmount).toEqualTypeOf<string>();
  },
  onFailed({ data }) {
    expectTypeOf(data.amount).toEqualTypeOf<string>();
    expectTypeOf(data.failureCode).toEqualTypeOf<number>();
  },
});
const withoutId = z.object({ event: z.literal('transfer.success'), data: z.object({ amount: z.number() }) });
// @ts-expect-error -- without an id there is nothing to deduplicate on.
transferService({ payload: withoutId });

// Without a schema that makes one, there is no other event.
// @ts-expect-error -- the documented service has no other event.
transferCallbackReceiver({ store, onSuccess: nothing, onFailed: nothing, onOther: nothing });
transferCallbackReceiver({
  store,
  onSuccess: nothing,
  onFailed: nothing,
  // So the outcome of a valid callback has all its fields, and its `event` need not be compared.
  onOutcome(outcome) {
    if (outcome.outcome !== 'processed') return;
    expectTypeOf(outcome.status).toEqualTypeOf<'SUCCESS' | 'FAILED'>();
    expectTypeOf(outcome.externalId).toEqualTypeOf<string>();
  },
});

// Only a schema that makes a reversal has a handler of it, with its type.
// @ts-expect-error -- the documented service reverses no transfer.
transferCallbackReceiver({ store, onSuccess: nothing, onFailed: nothing, onReversed: nothing, retentionMs: 1 });
// The transaction of a store reaches the handlers, without a word of annotation, and through a receiver made before.
interface Client {
  query(text: string, values: unknown[]): Promise<void>;
}
declare const transactional: CallbackStore<Client>;
const receiver = transferCallbackReceiver({
  store: transactional,
  async onSuccess({ data }, { tx }) {
    expectTypeOf(tx).toEqualTypeOf<Client>();
    await tx.query('UPDATE payouts SET paid = true WHERE id = $1', [data.externalId]);
  },
  onFailed: (_callback, { tx }) => {
    expectTypeOf(tx).toEqualTypeOf<Client>();
  },
});
expectTypeOf(receiver).toEqualTypeOf<TransferCallbackReceiver<TransferCallback, Client>>();
transferCallbackRouter({ receiver });
transferCallbackListener({ receiver, bodyLimitBytes: 1_000 });

// A function for every outcome fits receivers of both kinds, and does not decide what the schema produces.
transferCallbackReceiver({
  store,
  onSuccess: ({ data }) => {
    expectTypeOf(data.reference).toEqualTypeOf<string>();
  },
  onFailed: nothing,
  onOutcome: (outcome: TransferCallbackOutcome) => outcome.id,
});

// `receive` resolves with an outcome and `onOutcome` gets it, narrowed by its name.
declare const documented: TransferCallbackReceiver;
const outcome = await documented.receive({}, { source: 'replay' });
expectTypeOf(outcome).toEqualTypeOf<TransferCallbackOutcome>();
expectTypeOf(outcome.durationMs).toEqualTypeOf<number>();
expectTypeOf(outcome.source).toEqualTypeOf<string>();
expectTypeOf(outcome.delivery).toEqualTypeOf<string>();
expectTypeOf(outcome.id).toEqualTypeOf<string | undefined>();
expectTypeOf(outcome.status).toEqualTypeOf<'SUCCESS' | 'FAILED' | 'REVERSED' | undefined>();

if (outcome.outcome === 'processed') {
  expectTypeOf(outcome.overlapped).toEqualTypeOf<boolean>();
  expectTypeOf(outcome.id).toEqualTypeOf<string>();
  if (outcome.event === 'other') {
    expectTypeOf(outcome.type).toEqualTypeOf<string>();
    expectTypeOf(outcome.externalId).toEqualTypeOf<string | undefined>();
  } else {
    expectTypeOf(outcome.event).toEqualTypeOf<'transfer.success' | 'transfer.failed' | 'transfer.reversed'>();
    expectTypeOf(outcome.status).toEqualTypeOf<'SUCCESS' | 'FAILED' | 'REVERSED'>();
    expectTypeOf(outcome.externalId).toEqualTypeOf<string>();
  }
  expectTypeOf(outcome.timestamp).toEqualTypeOf<string | undefined>();
  expectTypeOf(outcome.waitedMs).toEqualTypeOf<number>();
}
if (outcome.outcome === 'conflict') {
  expectTypeOf(outcome.recorded).toEqualTypeOf<TransferCallbackFacts | undefined>();
  expectTypeOf(outcome.received).toEqualTypeOf<TransferCallbackFacts | undefined>();
  expectTypeOf(outcome.id).toEqualTypeOf<string>();
}
if (outcome.outcome === 'invalid') {
  expectTypeOf(outcome.issues).toEqualTypeOf<readonly Issue[]>();
  expectTypeOf(outcome.id).toEqualTypeOf<string | undefined>();
  expectTypeOf(outcome.verified).toEqualTypeOf<boolean>();
  expectTypeOf(outcome).not.toHaveProperty('overlapped');
}
if (outcome.outcome === 'unauthorized') {
  expectTypeOf(outcome.id).toEqualTypeOf<undefined>();
  expectTypeOf(outcome.issues).toEqualTypeOf<readonly Issue[] | undefined>();
  expectTypeOf(outcome).not.toHaveProperty('overlapped');
}
if (outcome.outcome === 'retry_later') {
  expectTypeOf(outcome.retryAfterMs).toEqualTypeOf<number>();
  expectTypeOf(outcome.error).toEqualTypeOf<unknown>();
}
if (outcome.outcome === 'handler_failed') expectTypeOf(outcome.error).toEqualTypeOf<unknown>();
if (outcome.outcome === 'duplicate') expectTypeOf(outcome).not.toHaveProperty('error');
// Only some outcomes have an error: ask for the outcome first.
expectTypeOf(outcome).not.toHaveProperty('error');
// @ts-expect-error -- not the name of an outcome.
export const unknownName: OutcomeName = 'acknowledged';

expectTypeOf(await documented.close({ timeoutMs: 1_000 })).toEqualTypeOf<{
  unfinished: number;
  ids: readonly string[];
}>();
// @ts-expect-error -- the options as they apply cannot be changed.
documented.options.leaseMs = 1;

// Errors are distinguished by a code, which is one of those that exist.
const { code } = new TransferCallbackError('STORE_TIMEOUT', 'The store did not response.');
expectTypeOf(code).toEqualTypeOf<TransferCallbackErrorCode>();
// @ts-expect-error -- not a code.
new TransferCallbackError('STORE_SLOW', 'The store did not response.');
