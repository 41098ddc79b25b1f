import { describe, expect, test, vi } from 'vitest';
import type { transferCallbackSchema } from 'transfer-callbacks';
import { transferService } from 'transfer-callbacks/client';
import { z } from 'zod';
import { serviceOf } from '../support.js';
import { callback, inspectWith, record } from './support.js';

describe('what is compared', () => {
  test('an inspection compares every fact that the service reports with the record', async () => {
    const long = 'x'.repeat(300);
    const cases: [what: string, data: object, fingerprint: string, verdict: string][] = [
      ['the same facts', {}, record, 'handled'],
      ['another amount', { amount: 6 }, record, 'conflict'],
      ['the amount as text', { amount: '5.00' }, record, 'handled'],
      ['the amount as another text', { amount: '5.00' }, '["SUCCESS","5.0","XAF","payout-1"]', 'handled'],
      ['another amount as text', { amount: '5.01' }, record, 'conflict'],
      ['another status, with the amount as text', { amount: '5.00', status: 'FAILED' }, record, 'conflict'],
      ['an amount that is no text of a number', { amount: '' }, record, 'conflict'],
      ['a null amount', { amount: null }, '["SUCCESS",0,"XAF","payout-1"]', 'conflict'],
      ['an empty amount, where the record has 0', { amount: '' }, '["SUCCESS",0,"XAF","payout-1"]', 'conflict'],
      [
        'an amount of 0, where that of the record is empty',
        { amount: 0 },
        '["SUCCESS","","XAF","payout-1"]',
        'conflict',
      ],
      ['another amount, where the record has text', { amount: 5 }, '["SUCCESS","6","XAF","payout-1"]', 'conflict'],
      ['an externalId that is the same number', { externalId: '01' }, '["SUCCESS",5,"XAF",1]', 'conflict'],
      ['another currency', { currency: 'XOF' }, record, 'conflict'],
      ['another status', { status: 'FAILED' }, record, 'conflict'],
      ['another externalId', { externalId: 'payout-2' }, record, 'conflict'],
      ['facts that the service leaves out', { amount: undefined, currency: undefined }, record, 'handled'],
      ['facts that the callback of another service left out', {}, '["SUCCESS",null,null,"payout-1"]', 'handled'],
      ['a list without facts', {}, '[]', 'conflict'],
      ['long text', { externalId: long }, JSON.stringify(['SUCCESS', 5, 'XAF', long]), 'handled'],
      ['text that turns the line', { currency: '\u202e' }, '["SUCCESS",5,"\u202e","payout-1"]', 'handled'],
      ['a record that cannot be read as facts', {}, 'facts of a store of your own', 'undecided'],
    ];
    for (const [what, data, fingerprint, verdict] of cases) {
      const inspection = await inspectWith(data, { state: 'handled', fingerprint });
      expect(inspection.verdict, what).toBe(verdict);
    }
  });

  test('is what the schema of the receiver makes of the transfer', async () => {
    const schema = z.discriminatedUnion('event', [
      z.object({
        event: z.literal('transfer.success'),
        data: z.object({
          ...{ id: z.string(), externalId: z.string(), currency: z.string(), status: z.literal('SUCCESS') },
          amount: z.string().transform(parseFloat),
        }),
      }),
    ]);
    const handled = { state: 'handled', fingerprint: record } as const;
    expect((await inspectWith({ amount: '5.00 XAF' }, handled)).verdict).toBe('conflict');
    const { readCallback } = transferService({ payload: schema as unknown as typeof transferCallbackSchema });
    const inspect = (amount: unknown) => {
      const known = serviceOf({ getTransaction: () => Promise.resolve({ ...callback.data, amount }) });
      return inspectWith({}, handled, { service: { ...known, readCallback } });
    };
    expect((await inspect('5.00 XAF')).verdict).toBe('handled');
    expect((await inspect(5)).verdict).toBe('handled'); // It does not fit the schema.
  });

  test('a transfer that is final at an unknown time has none', async () => {
    for (const timestamp of [undefined, 'soon', 5]) {
      expect(await inspectWith({ timestamp }, { state: 'free' })).toMatchObject({ service: { finalAt: undefined } });
    }
  });

  test('a transfer that becomes final between the two readings is not called unfounded', async () => {
    const statuses = ['PENDING', 'SUCCESS'];
    const getTransaction = vi.fn(() => Promise.resolve({ ...callback.data, status: statuses.shift() ?? '' }));
    const handled = { state: 'handled', fingerprint: record } as const;
    expect(await inspectWith({}, handled, { service: serviceOf({ getTransaction }) })).toMatchObject({
      verdict: 'handled',
      service: { state: 'final' },
    });
    expect(getTransaction).toHaveBeenCalledTimes(2);
  });
});
