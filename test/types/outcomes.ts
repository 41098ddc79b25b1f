// `receive` resolves with an outcome and `onOutcome` gets it, narrowed by its name.
import { expectTypeOf } from 'vitest';
import { TransferCallbackError, type TransferCallbackOutcome, type TransferCallbackReceiver } from 'transfer-callbacks';
import type { Issue } from '../../src/lib/standard-schema.js';
import type { TransferCallbackFacts } from '../../src/core/facts.js';
import type { OutcomeName } from '../../src/core/outcomes.js';
import type { TransferCallbackErrorCode } from '../../src/lib/errors.js';

declare const receiver: TransferCallbackReceiver;
const outcome = await receiver.receive({}, { source: 'replay' });
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

expectTypeOf(await receiver.close({ timeoutMs: 1_000 })).toEqualTypeOf<{
  unfinished: number;
  ids: readonly string[];
}>();
// @ts-expect-error -- the options as they apply cannot be changed.
receiver.options.leaseMs = 1;

// Errors are distinguished by a code, which is one of those that exist.
const { code } = new TransferCallbackError('STORE_TIMEOUT', 'The store did not response.');
expectTypeOf(code).toEqualTypeOf<TransferCallbackErrorCode>();
// @ts-expect-error -- not a code.
new TransferCallbackError('STORE_SLOW', 'The store did not response.');
