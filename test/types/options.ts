// What the options take, and what they must refuse.
import {
  memoryStore,
  redisStore,
  RetryLater,
  transferCallbackHandler,
  transferCallbackListener,
  hmacSignature,
  transferCallbackReceiver,
  transferCallbackRouter,
  urlToken,
  type CallbackStore,
  type Logger,
  type ReceiverOptions,
  type TransferCallback,
  type TransferCallbackOptions,
} from 'transfer-callbacks';
import { defineService } from 'transfer-callbacks/client';
import type { Request } from 'express';
import { pino } from 'pino';
import type { HttpOptions } from '../../src/http/options.js';

const store = memoryStore();
const onSuccess = (): undefined => undefined;
const onFailed = async (): Promise<void> => {
  await Promise.resolve();
};

// Most options may be given as undefined, so that a value which may be missing needs no condition.
transferCallbackRouter({
  store,
  onSuccess,
  onFailed,
  inFlightWaitMs: undefined,
  leaseMs: undefined,
  handlerTimeoutMs: undefined,
  storeTimeoutMs: undefined,
  retentionMs: undefined,
  onOutcome: undefined,
  logger: undefined,
  bodyLimitBytes: undefined,
});
// @ts-expect-error -- the verifier of an unknown tenant would trust every sender.
transferCallbackRouter({ store, onSuccess, onFailed, verify: undefined });
// @ts-expect-error -- as above.
transferCallbackListener({ store, onSuccess, onFailed, verify: undefined });
// @ts-expect-error -- as above.
transferCallbackHandler({ store, onSuccess, onFailed, verify: undefined });
memoryStore({ maxEntries: undefined });
redisStore({ call: () => Promise.resolve(null) }, { prefix: undefined });
new RetryLater('Not now.', { retryAfterMs: undefined });

// A logger is pino's, or the like, or none.
transferCallbackReceiver({ store, onSuccess, onFailed, logger: false });
transferCallbackReceiver({ store, onSuccess, onFailed, logger: pino() });
const logger: Logger = { warn: (details: object) => details, error: () => undefined };
transferCallbackReceiver({ store, onSuccess, onFailed, logger });
// @ts-expect-error -- `true` is no logger.
transferCallbackReceiver({ store, onSuccess, onFailed, logger: true });

// Both handlers, and nothing else.
// @ts-expect-error -- no onFailed.
transferCallbackReceiver({ store, onSuccess });
// @ts-expect-error -- no onSuccess.
transferCallbackRouter({ store, onFailed });
// @ts-expect-error -- undefined is no handler.
transferCallbackRouter({ store, onSuccess, onFailed: undefined });
// @ts-expect-error -- the service has no third event.
transferCallbackRouter({ store, onSuccess, onFailed, onPending: onSuccess });
// @ts-expect-error -- misspelt.
transferCallbackRouter({ store, onSuccess, onFailed, onSucess: onSuccess });
// @ts-expect-error -- misspelt.
transferCallbackReceiver({ store, onSuccess, onFailed, leaseMS: 15_000 });
// @ts-expect-error -- onSuccess is never called for a failure.
transferCallbackReceiver({ store, onSuccess: ({ event }: { event: 'transfer.failed' }) => event, onFailed });
// @ts-expect-error -- no callback has this field.
transferCallbackReceiver({ store, onSuccess: ({ data }: { data: { fee: number } }) => data.fee, onFailed });
// @ts-expect-error -- HTTP's options are not the receiver's.
transferCallbackReceiver({ store, onSuccess, onFailed, verify: () => true });

// A receiver made before has its options already.
const receiver = transferCallbackReceiver({ store, onSuccess, onFailed });
transferCallbackRouter({ receiver });
void receiver.receive({}, { source: undefined, waitUntil: undefined, verify: () => true });
// @ts-expect-error -- the verifier of an unknown tenant would trust every sender.
void receiver.receive({}, { verify: new Map<string, () => boolean>().get('unknown') });
// @ts-expect-error -- misspelt.
void receiver.receive({}, { verfy: () => false });
// @ts-expect-error -- which of the two stores would it be?
transferCallbackRouter({ receiver, store, onSuccess, onFailed });
// @ts-expect-error -- a store is no receiver.
transferCallbackRouter({ receiver: store });

// A store is what claims.
// @ts-expect-error -- no store.
transferCallbackReceiver({ onSuccess, onFailed });
// @ts-expect-error -- a Map keeps claims for nobody.
transferCallbackReceiver({ store: new Map(), onSuccess, onFailed });
// @ts-expect-error -- the factory, not called.
transferCallbackReceiver({ store: memoryStore, onSuccess, onFailed });
const forgetful = {
  claim: () =>
    Promise.resolve({ state: 'claimed' as const, claim: { tx: undefined, renew: () => Promise.resolve(true) } }),
};
// @ts-expect-error -- a lease that cannot be handled or released.
transferCallbackReceiver({ store: forgetful, onSuccess, onFailed });
// @ts-expect-error -- a claim is one of three, and `locked` is none of them.
export const locking: CallbackStore = { claim: () => Promise.resolve({ state: 'locked' }) };

// Options can be annotated without arguments, for the router and the listener alike.
const annotated: TransferCallbackOptions = { store, onSuccess, onFailed, verify: urlToken(process.env.SECRET) };
transferCallbackRouter(annotated);
transferCallbackListener(annotated);
const http: HttpOptions = { verify: (request, callback) => request.url === callback?.data.id, bodyLimitBytes: 1_000 };
transferCallbackRouter({ receiver, ...http });
const fromExpress: HttpOptions<TransferCallback, Request> = { verify: (request) => request.hostname === 'a.example' };
transferCallbackRouter({ receiver, ...fromExpress });
// @ts-expect-error -- Express's request is not what the listener gets.
transferCallbackListener({ receiver, ...fromExpress });

// Times are numbers of milliseconds.
const times: Partial<ReceiverOptions> = { leaseMs: 15_000, retentionMs: 604_800_000 };
transferCallbackReceiver({ store, onSuccess, onFailed, ...times });
// @ts-expect-error -- no text.
transferCallbackReceiver({ store, onSuccess, onFailed, leaseMs: '15s' });
// @ts-expect-error -- no text.
transferCallbackRouter({ store, onSuccess, onFailed, bodyLimitBytes: '100kb' });
// @ts-expect-error -- no text.
memoryStore({ maxEntries: '1000' });
// @ts-expect-error -- the unit is in the name.
new RetryLater('Not now.', { retryAfter: 30 });

// @ts-expect-error -- the documented service has no verifier: an unknown name must not mean that one.
transferCallbackReceiver({ store, onSuccess, onFailed, service: undefined });
// @ts-expect-error -- as above.
transferCallbackReceiver({ store, onSuccess, onFailed, confirm: undefined });
transferCallbackReceiver({ store, onSuccess, onFailed, confirm: false });
// @ts-expect-error -- an old request that is sent again would be accepted.
hmacSignature({ header: 'x-signature', secrets: 'a-secret-of-a-test', timestamp: undefined });
// @ts-expect-error -- every payload would fit.
defineService({ payload: undefined, read: () => ({ state: 'a' }), states: { a: 'SUCCESS', b: 'FAILED' } });
