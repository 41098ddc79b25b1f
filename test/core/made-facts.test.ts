// Which facts of a callback count if a schema makes other ones, or leaves them out.
import { describe, expect, test, vi } from 'vitest';
import { z } from 'zod/v4';
import { memoryStore, transferCallbackReceiver, type CallbackShape } from 'transfer-callbacks';
import { defineService, transferService, type Transaction } from 'transfer-callbacks/client';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { reversingReceiver } from '../support/helpers/reversing.js';

const ids = { id: z.string(), externalId: z.string(), status: z.literal('SUCCESS') };
const money = { amount: z.number(), currency: z.string() };
const success = (fields: z.ZodRawShape) =>
  z.object({ event: z.literal('transfer.success'), data: z.object({ ...ids, ...fields }) });
/** Returns a schema that changes the data of a callback that fits these fields. */
const changing = (fields: z.ZodRawShape, change: (data: Record<string, never>) => object) =>
  success(fields).transform(({ event, data }) => ({ event, data: change(data as unknown as Record<string, never>) }));

const schemas = {
  three: success({}),
  minor: success({ ...money, amount: z.coerce.number().transform((amount) => amount * 100) }),
  renamed: changing({ value: z.number(), currency: z.string() }, ({ value, ...data }) => ({ ...data, amount: value })),
  spelling: changing({ amount: z.any(), currency: z.string() }, ({ amount, currency, ...data }) => ({
    ...data,
    amount: Number(String(amount).replaceAll(',', '')),
    currency: String(currency).toUpperCase(),
  })),
  reference: changing({ ...money, externalId: z.undefined().optional(), reference: z.string() }, (data) => ({
    ...data,
    externalId: data.reference,
  })),
  numeric: success({ ...money, externalId: z.coerce.string() }),
  inPlace: z.any().transform((given: { data: object }) => {
    Object.assign(given.data, { amount: undefined, currency: undefined });
    return given;
  }),
  text: success({ ...money, amount: z.coerce.string() }),
  fee: success({ ...money, fee: z.number().transform((fee) => fee * 100) }),
};

/** What the service sends. A change of `undefined` leaves the field out. */
function sent(changes: object = {}): { event: string; data: Record<string, unknown> } {
  const { event, data } = transferSucceeded({ id: 'tr-1', externalId: 'payout-1', amount: 100, currency: 'XAF' });
  return JSON.parse(JSON.stringify({ event, data: { ...data, ...changes } })) as ReturnType<typeof sent>;
}

type Way = 'without confirm' | 'with confirm: true' | 'with a confirm of one’s own' | 'reconciled';

/** Returns what sends callbacks to a receiver of this schema, in this way, and what its handler has got. */
function receiving(name: keyof typeof schemas, way: Way, confirm: unknown = true) {
  let last: unknown;
  const onSuccess = vi.fn();
  const service = transferService({
    ...{ baseUrl: 'http://service.example', apiKey: 'key', apiSecret: 'secret' },
    payload: schemas[name] as unknown as z.ZodType<CallbackShape>,
    fetch: () => Promise.resolve(Response.json(last)),
    readTransaction: (body) => body as Transaction,
  });
  const receiver = transferCallbackReceiver({
    ...{ store: memoryStore(), service, onSuccess, onFailed: onSuccess, logger: false },
    confirm: way === 'without confirm' ? false : way === 'with a confirm of one’s own' ? () => confirm : true,
  });
  const source = way === 'reconciled' ? 'reconciliation' : 'http';
  return {
    onSuccess,
    send: (callback: ReturnType<typeof sent>) => {
      last = callback.data;
      return receiver.receive(structuredClone(callback), { source });
    },
  };
}

const handledOnce = ['processed', 'duplicate', 'conflict'];

describe.each<Way>(['without confirm', 'with confirm: true', 'with a confirm of one’s own', 'reconciled'])(
  '%s',
  (way) => {
    test.each<[what: string, keyof typeof schemas, changes: object[], outcomes?: string[]]>([
      ['leaves out amount and currency', 'three', [{}, {}, { amount: 200 }]],
      ['leaves out the amount, of which the currency differs', 'three', [{}, {}, { currency: 'XOF' }]],
      ['removes them from its input', 'inPlace', [{}, {}, { amount: 200 }]],
      ['makes another unit', 'minor', [{}, { amount: '100' }, { amount: 200 }]],
      ['makes a text', 'text', [{}, {}, { amount: 200 }]],
      [
        'reads a renamed amount',
        'renamed',
        [{ value: 100 }, { value: 100 }, { value: 200 }].map((each) => ({ ...each, amount: undefined })),
      ],
      [
        'reads a renamed externalId',
        'reference',
        ['a', 'a', 'b'].map((reference) => ({ reference, externalId: undefined })),
      ],
      ['makes the externalId a text', 'numeric', [{ externalId: 42 }, { externalId: 42 }, { externalId: 43 }]],
      ['unites two spellings', 'spelling', [{ amount: '1,000' }, { amount: 1_000, currency: 'xaf' }, { amount: 1 }]],
      ['leaves out what was not sent', 'three', [{ amount: undefined }, {}, {}], ['invalid', 'processed', 'duplicate']],
      [
        'leaves out what is null',
        'three',
        [{}, { amount: null }, { currency: null }],
        ['processed', 'invalid', 'invalid'],
      ],
    ])('a schema that %s', async (_what, name, changes, outcomes = handledOnce) => {
      const { send, onSuccess } = receiving(name, way);
      const seen = [];
      for (const each of changes) seen.push((await send(sent(each))).outcome);
      expect(seen).toEqual(outcomes);
      expect(onSuccess).toHaveBeenCalledTimes(1);
    });
  },
);

test('an amount that was neither made nor sent is named', async () => {
  const { send } = receiving('three', 'without confirm');
  expect(await send(sent({ amount: undefined, currency: 5 }))).toMatchObject({
    outcome: 'invalid',
    issues: [
      { path: ['data', 'amount'], message: 'Expected a number or a string' },
      { path: ['data', 'currency'], message: 'Expected a string' },
    ],
  });
  expect(await send(sent({ id: 123 }))).toMatchObject({ outcome: 'invalid', issues: [{ path: ['data', 'id'] }] });
});

test('a schema reads a callback once, whatever confirm returns', async () => {
  const way = 'with a confirm of one’s own';
  const { send, onSuccess } = receiving('fee', way, true);
  expect(await send(sent({ fee: 5 }))).toMatchObject({ outcome: 'processed' });
  expect(onSuccess.mock.calls).toMatchObject([[{ data: { fee: 500 } }, {}]]);
  const asked = receiving('fee', way, sent({ fee: 7 }));
  expect(await asked.send(sent({ fee: 5 }))).toMatchObject({ outcome: 'processed' });
  expect(asked.onSuccess.mock.calls).toMatchObject([[{ data: { fee: 700 } }, {}]]);
});

// What becomes of the records of before when an app moves to `defineService`.
/** The amounts of the service are in cents. */
const centSchema = z.looseObject({
  event: z.literal('transfer.success'),
  data: z.looseObject({
    ...{ id: z.string(), externalId: z.string(), status: z.literal('SUCCESS'), currency: z.string() },
    amount: z.number().transform((cents) => cents / 100),
  }),
});

const readIn = (unit: number) =>
  defineService({
    read: ({ event, data: { id, externalId, amount, currency } }: ReturnType<typeof transferSucceeded>) => ({
      ...{ state: event, id, externalId, currency },
      amount: amount / unit,
    }),
    states: { 'transfer.success': 'SUCCESS', 'transfer.failed': 'FAILED' },
  });

test('a copy of what was handled under a schema that converts amounts is a duplicate in the same unit only', async () => {
  const handler = vi.fn();
  const handlers = { store: memoryStore(), onSuccess: handler, onFailed: handler, logger: false } as const;
  const callback = transferSucceeded({ amount: 1_999 });
  const before = transferCallbackReceiver({ ...handlers, service: transferService({ payload: centSchema }) });
  expect(await before.receive(callback)).toMatchObject({ outcome: 'processed' });
  for (const [unit, outcome] of [[100, 'duplicate'] as const, [1, 'conflict'] as const]) {
    const after = transferCallbackReceiver({ ...handlers, service: readIn(unit) });
    expect(await after.receive(callback)).toMatchObject({ outcome });
  }
  expect(handler).toHaveBeenCalledTimes(1);
});

test('a reversal that onOther has handled is handled once more, by onReversed', async () => {
  const store = memoryStore();
  const handled: string[] = [];
  const note = (name: string) => () => void handled.push(name);
  const callback = { event: 'payout.returned', data: { id: 'tr-1', externalId: 'p-1' } };
  const before = transferCallbackReceiver({
    ...{ store, logger: false as const, onSuccess: note('success'), onFailed: note('failed'), onOther: note('other') },
    service: defineService({
      read: ({ event, data }: typeof callback) => ({ ...data, state: event }),
      states: { 'payout.paid': 'SUCCESS', 'payout.failed': 'FAILED', 'payout.returned': 'OTHER' },
    }),
  });
  expect(await before.receive(callback)).toMatchObject({ outcome: 'processed' });
  const { receiver, ran } = reversingReceiver(store);
  expect(await receiver.receive(callback)).toMatchObject({ outcome: 'processed' });
  expect(await receiver.receive(callback)).toMatchObject({ outcome: 'duplicate' });
  expect([...handled, ...ran]).toEqual(['other', 'REVERSED tr-1']);
});
