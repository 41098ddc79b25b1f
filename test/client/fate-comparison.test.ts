import { describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { callback, fateWith, record } from './fate-support.js';

describe('what is compared', () => {
  test.each<[string, object, string, string]>([
    ['the same facts', {}, record, 'handled'],
    ['another amount', { amount: 6 }, record, 'conflict'],
    ['another currency', { currency: 'XOF' }, record, 'conflict'],
    ['another status', { status: 'FAILED' }, record, 'conflict'],
    ['another externalId', { externalId: 'payout-2' }, record, 'conflict'],
    ['facts that the service leaves out', { amount: undefined, currency: undefined }, record, 'handled'],
    ['a record that cannot be read as facts', {}, 'facts of a store of your own', 'conflict'],
  ])('%s: %j and %j is %s', async (_title, data, fingerprint, verdict) => {
    expect((await fateWith(data, { state: 'settled', fingerprint })).verdict).toBe(verdict);
  });

  test('is what the schema of the receiver makes of the transfer', async () => {
    const schema = z.discriminatedUnion('event', [
      z.object({
        event: z.literal('transfer.success'),
        data: z.object({
          ...{ id: z.string(), externalId: z.string(), currency: z.string(), status: z.literal('SUCCESS') },
          amount: z.string().transform(Number),
        }),
      }),
    ]);
    const settled = { state: 'settled', fingerprint: record } as const;
    expect((await fateWith({ amount: '5.00' }, settled)).verdict).toBe('conflict');
    expect((await fateWith({ amount: '5.00' }, settled, { schema })).verdict).toBe('handled');
    expect((await fateWith({ amount: 5 }, settled, { schema })).verdict).toBe('handled'); // It does not fit the schema.
  });

  test.each([undefined, 'soon', 5])('a transfer whose timestamp is %j may have been forgotten', async (timestamp) => {
    const fate = await fateWith({ timestamp }, { state: 'free' });
    expect(fate).toMatchObject({ verdict: 'missed_or_forgotten', service: { finalAt: undefined } });
  });

  test('the retention is 7 days, that of the receiver, or the one that is given', async () => {
    const timestamp = new Date(Date.now() - 6 * 86_400_000).toISOString();
    const inspect = () => Promise.resolve({ state: 'free' as const });
    const receiver = { inspect, options: { retentionMs: 86_400_000 } };
    const verdicts = await Promise.all(
      [{}, { store: undefined, receiver }, { store: undefined, receiver, retentionMs: 8 * 86_400_000 }].map(
        async (options) => (await fateWith({ timestamp }, { state: 'free' }, options)).verdict,
      ),
    );
    expect(verdicts).toEqual(['missed', 'missed_or_forgotten', 'missed']);
  });

  test('a transfer that becomes final between the two readings is not called unfounded', async () => {
    const statuses = ['PENDING', 'SUCCESS'];
    const getTransaction = vi.fn(() => Promise.resolve({ ...callback.data, status: statuses.shift() ?? '' }));
    const settled = { state: 'settled', fingerprint: record } as const;
    expect(await fateWith({}, settled, { client: { getTransaction } })).toMatchObject({
      verdict: 'handled',
      service: { state: 'final' },
    });
    expect(getTransaction).toHaveBeenCalledTimes(2);
  });
});
