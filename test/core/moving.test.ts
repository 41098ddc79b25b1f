// What becomes of the records of before when an app moves to `defineService`.
import { expect, test, vi } from 'vitest';
import { z } from 'zod/v4';
import { memoryStore, transferCallbackReceiver } from 'transfer-callbacks';
import { defineService, transferService } from 'transfer-callbacks/client';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { reversingReceiver } from '../support/helpers/reversing.js';

const schema = z.looseObject({
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
  const before = transferCallbackReceiver({ ...handlers, service: transferService({ payload: schema }) });
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
