// What a definition of a payout service gives to the handlers, and what it refuses.
import { expectTypeOf } from 'vitest';
import { z } from 'zod';
import {
  hmacSignature,
  memoryStore,
  transferCallbackHandler,
  transferCallbackListener,
  transferCallbackReceiver,
  transferCallbackRouter,
  type CallbackStore,
  type HandlerContext,
  type PayoutService,
  type ReceiverOptions,
  type TransferCallback,
  type TransferCallbackReceiver,
} from 'transfer-callbacks';
import { defineService, type ServiceEvent } from 'transfer-callbacks/client';

const store = memoryStore();
const nothing = (): undefined => undefined;
const handlers = { onSuccess: nothing, onFailed: nothing };
const verify = hmacSignature({ header: 'x-signature', secrets: 'a-secret-long-enough' });

// Without a schema the argument of `read` is as JSON.parse returns it, and the handlers get what is certain.
/* eslint-disable @typescript-eslint/no-unsafe-assignment, @typescript-eslint/no-unsafe-member-access -- It is `any`. */
const loose = defineService({
  read: ({ event, data }) => ({ state: event, id: data.id, externalId: data.reference, amount: data.amount }),
  states: { paid: 'SUCCESS', bounced: 'FAILED', waiting: 'PENDING' },
});
/* eslint-enable @typescript-eslint/no-unsafe-assignment, @typescript-eslint/no-unsafe-member-access */
transferCallbackReceiver({
  store,
  service: loose,
  onSuccess({ event, data }) {
    expectTypeOf(event).toEqualTypeOf<'transfer.success'>();
    expectTypeOf(data.status).toEqualTypeOf<'SUCCESS'>();
    expectTypeOf(data.id).toEqualTypeOf<string>();
    expectTypeOf(data.externalId).toEqualTypeOf<string>();
    // A success without it is refused.
    expectTypeOf(data.amount).toEqualTypeOf<string | number>();
    // `read` names no currency.
    expectTypeOf(data.currency).toEqualTypeOf<undefined>();
  },
  onFailed({ event, data }) {
    expectTypeOf(event).toEqualTypeOf<'transfer.failed'>();
    expectTypeOf(data.status).toEqualTypeOf<'FAILED'>();
    expectTypeOf(data.amount).toEqualTypeOf<string | number | undefined>();
  },
});

// `payload` types the argument of `read`, and all that `read` returns reaches the handlers.
const payload = z.object({
  event: z.string(),
  data: z.object({
    id: z.number(),
    reference: z.string().nullable(),
    amount: z.number(),
    currency: z.string().nullish(),
    bank: z.object({ name: z.string() }).optional(),
  }),
});
const typed = defineService({
  payload,
  read(given) {
    expectTypeOf(given).toEqualTypeOf<z.infer<typeof payload>>();
    const { event, data } = given;
    if (event === 'customer') return { ignored: event };
    const { id, reference, amount, currency, bank } = data;
    return { state: event, id, externalId: reference, amount, currency, bank, status: 'any', timestamp: 'now' };
  },
  states: { paid: 'SUCCESS', bounced: 'FAILED', back: 'REVERSED', charge: 'OTHER', refund: 'OTHER' },
  verify: [verify],
  query: (id, get) => get(`https://service.example/${id}`, { authorization: 'Bearer key' }),
});
declare const withClient: CallbackStore<{ query(text: string): Promise<void> }>;
const receiver = transferCallbackReceiver({
  store: withClient,
  service: typed,
  confirm: true,
  retentionMs: 60 * 86_400_000,
  async onSuccess({ data }, { tx }) {
    expectTypeOf(data.id).toEqualTypeOf<string>();
    expectTypeOf(data.externalId).toEqualTypeOf<string>();
    expectTypeOf(data.amount).toEqualTypeOf<number>();
    expectTypeOf(data.currency).toEqualTypeOf<string>();
    expectTypeOf(data.timestamp).toEqualTypeOf<string>();
    expectTypeOf(data.bank).toEqualTypeOf<{ name: string } | undefined>();
    expectTypeOf(data.status).toEqualTypeOf<'SUCCESS'>();
    // @ts-expect-error -- what an ignored event has is not of a transfer.
    expectTypeOf(data.ignored);
    await tx.query('');
  },
  onFailed({ data }) {
    expectTypeOf(data.amount).toEqualTypeOf<number | undefined>();
    // @ts-expect-error -- a failure may have no amount.
    data.amount.toFixed(2);
  },
  onReversed({ event, data }) {
    expectTypeOf(data.amount).toEqualTypeOf<number | undefined>();
    expectTypeOf(event).toEqualTypeOf<'transfer.reversed'>();
    expectTypeOf(data.status).toEqualTypeOf<'REVERSED'>();
    expectTypeOf(data.bank).toEqualTypeOf<{ name: string } | undefined>();
  },
  onOther({ event, type, data }, { afterCommit }) {
    expectTypeOf(event).toEqualTypeOf<'other'>();
    // The keys of `states` that are OTHER.
    expectTypeOf(type).toEqualTypeOf<'charge' | 'refund'>();
    expectTypeOf(data.id).toEqualTypeOf<string>();
    expectTypeOf(data.externalId).toEqualTypeOf<string | undefined>();
    expectTypeOf(data.bank).toEqualTypeOf<{ name: string } | undefined>();
    afterCommit(nothing);
  },
  onOutcome(outcome) {
    if (outcome.outcome === 'ignored') expectTypeOf(outcome.type).toEqualTypeOf<string>();
    if (outcome.outcome === 'processed') expectTypeOf(outcome.externalId).toEqualTypeOf<string | undefined>();
  },
});
transferCallbackRouter({ receiver });
transferCallbackListener({ receiver, verify });
transferCallbackHandler({ receiver });
transferCallbackRouter({
  store,
  service: loose,
  ...handlers,
  verify(_request, callback) {
    expectTypeOf(callback?.data.externalId).toEqualTypeOf<string | undefined>();
    return true;
  },
});

// Where `read` may leave the key out, a success may have no amount.
interface Short {
  id: string;
  amount: number | undefined;
}
const short = defineService({
  read: ({ id, amount }: Short) => ({ state: 'paid', id, externalId: id, ...(amount !== undefined && { amount }) }),
  states: { paid: 'SUCCESS', bounced: 'FAILED' },
});
transferCallbackReceiver({
  store,
  service: short,
  onSuccess: ({ data }) => expectTypeOf(data.amount).toEqualTypeOf<number | undefined>(),
  onFailed: ({ data }) => expectTypeOf(data.amount).toEqualTypeOf<number | undefined>(),
});

// `confirm` of your own gets the callbacks, without events of `onOther`.
transferCallbackReceiver({
  store,
  service: typed,
  retentionMs: 60 * 86_400_000,
  confirm(callback) {
    expectTypeOf(callback.event).toEqualTypeOf<'transfer.success' | 'transfer.failed' | 'transfer.reversed'>();
    expectTypeOf(callback.data.amount).toEqualTypeOf<number | undefined>();
    if (callback.event === 'transfer.success') expectTypeOf(callback.data.amount).toEqualTypeOf<number>();
    return true;
  },
  ...{ ...handlers, onReversed: nothing, onOther: nothing },
});

// A handler is required if and only if the service has its callbacks.
const all = { ...handlers, onReversed: nothing, onOther: nothing, retentionMs: 60 * 86_400_000 };
transferCallbackReceiver({ store, service: typed, ...all });
// @ts-expect-error -- money that comes back would be lost.
transferCallbackReceiver({ store, service: typed, ...all, onReversed: undefined });
// @ts-expect-error -- its events would be refused.
transferCallbackReceiver({ store, service: typed, ...all, onOther: undefined });
// @ts-expect-error -- as above.
transferCallbackRouter({ store, service: typed, ...handlers, onOther: nothing });
// @ts-expect-error -- no state of the service is REVERSED.
transferCallbackReceiver({ store, service: loose, ...handlers, onReversed: nothing });
// @ts-expect-error -- no state of the service is OTHER.
transferCallbackReceiver({ store, service: loose, ...handlers, onOther: nothing });
// A failure that may follow a success is REVERSED, and may be the only one.
const returned = defineService({
  read: () => ({ state: 'paid', id: 'a', externalId: 'b' }),
  states: { paid: 'SUCCESS', returned: 'REVERSED' },
});
const withoutFailed = { store, service: returned, onSuccess: nothing, onReversed: nothing, retentionMs: 1 };
transferCallbackReceiver(withoutFailed);
// @ts-expect-error -- no state of the service is FAILED.
transferCallbackReceiver({ ...withoutFailed, onFailed: nothing });
// A handler of the documented callback gets no callback of this service.
const thank = ({ data }: TransferCallback): string => data.provider;
// @ts-expect-error -- as above.
transferCallbackReceiver({ store, service: loose, onSuccess: thank, onFailed: nothing });
// @ts-expect-error -- what is no service is none.
transferCallbackReceiver({ store, service: { read: nothing, states: {} }, ...handlers });

// A service has a type that can be named, as an app does that keeps several.
const byTenant = new Map<
  string,
  PayoutService<ServiceEvent<{ state: string; fee: number }, { a: 'SUCCESS'; b: 'FAILED' }>>
>();
byTenant.set('a', defineService({ read: () => ({ state: 'a', fee: 5 }), states: { a: 'SUCCESS', b: 'FAILED' } }));
class Receiving {
  receiver: TransferCallbackReceiver<
    Extract<ServiceEvent<{ state: string }, { a: 'SUCCESS'; b: 'FAILED' }>, { event: 'transfer.success' }>
  >;
  constructor(given: Receiving['receiver']) {
    this.receiver = given;
  }
}
expectTypeOf<Receiving['receiver']['receive']>().toBeFunction();

// What a definition refuses.
const states = { paid: 'SUCCESS', bounced: 'FAILED' } as const;
const read = () => ({ state: 'paid', id: 7, externalId: 'p-1' });
// @ts-expect-error -- no read.
defineService({ states });
// @ts-expect-error -- no states.
defineService({ read });
// @ts-expect-error -- misspelt.
defineService({ read, states, verifiy: verify });
// @ts-expect-error -- a state means one of five.
defineService({ read, states: { ...states, waiting: 'WAITING' } });
// @ts-expect-error -- without a state nothing is decided.
defineService({ read: () => ({ id: 7, externalId: 'p-1' }), states });
// @ts-expect-error -- an id is a string or a number.
defineService({ read: () => ({ ...read(), id: { value: 7 } }), states });
// @ts-expect-error -- an amount is a number or a string.
defineService({ read: () => ({ ...read(), amount: { value: 5 } }), states });
// @ts-expect-error -- a time is text, with its zone.
defineService({ read: () => ({ ...read(), timestamp: Date.now() }), states });
// @ts-expect-error -- it is not awaited.
defineService({ read: () => Promise.resolve(read()), states });
// @ts-expect-error -- an event that is read as nothing would be refused.
defineService({ read: ({ event }) => (event === 'paid' ? read() : undefined), states });
// @ts-expect-error -- an ignored event has a name.
defineService({ read: () => ({ ignored: true }), states });
/* eslint-disable @typescript-eslint/no-unsafe-assignment -- Its type is the error. */
// @ts-expect-error -- the payload has no such field.
defineService({ payload, read: ({ data }) => ({ state: 'paid', id: data.id, externalId: data.refrence }), states });
/* eslint-enable @typescript-eslint/no-unsafe-assignment */
// @ts-expect-error -- the verifier of an unknown tenant would trust every sender.
defineService({ read, states, verify: undefined });
// @ts-expect-error -- as above.
defineService({ read, states, verify: new Map<string, typeof verify>().get('unknown') });
// @ts-expect-error -- a secret is no verifier.
defineService({ read, states, verify: 'a-secret-long-enough' });
// @ts-expect-error -- no text.
defineService({ read, states, timeoutMs: '10s' });

// The options of a receiver can be extended, and be those of a class.
interface Client {
  query(text: string): Promise<void>;
}
interface TenantOptions extends ReceiverOptions<TransferCallback, Client> {
  readonly tenant: string;
}
declare const tenant: TenantOptions;
transferCallbackReceiver<TransferCallback, Client>(tenant);
export class Payouts implements ReceiverOptions {
  readonly store = memoryStore();
  onSuccess({ data }: TransferCallback, { signal }: HandlerContext): string {
    signal.throwIfAborted();
    return data.externalId;
  }
  onFailed(): void {
    throw new Error('not here');
  }
}
