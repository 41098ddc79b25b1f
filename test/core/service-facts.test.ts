// What `read` returns beside the state and the ids: amounts without a digit, times that are none, and keys too long.
import { expect, test } from 'vitest';
import { memoryStore } from 'transfer-callbacks';
import { containing } from '../support/helpers/containing.js';
import { announced, read, serve, states } from './service-support.js';

type Payload = ReturnType<typeof announced>;

test.each(['-', 'N/A', 'abc', 'NaN', ' ', '\n', '½'])(
  'the amount %j is invalid of a success, and none of a failure',
  async (amount) => {
    const { receive, handled } = serve();
    const message = 'Expected a number, or a string with a digit';
    expect(await receive(announced('payout.paid', { amount }))).toMatchObject({
      ...{ outcome: 'invalid', id: '7', issues: [{ path: ['amount'], message }] },
    });
    expect(await receive(announced('payout.bounced', { amount }))).toMatchObject({ outcome: 'processed' });
    // A copy without an amount has the same facts.
    expect(await receive(announced('payout.bounced', { amount: null }))).toMatchObject({ outcome: 'duplicate' });
    expect(handled).toEqual([
      { event: 'transfer.failed', data: expect.objectContaining({ amount: undefined, status: 'FAILED' }) as object },
    ]);
  },
);

test.each(['1,999.00', '1999 KES', '-5', '١٢٣', '５'])(
  'the amount %j has a digit, and is kept as it was sent',
  async (amount) => {
    const { receive, handled } = serve();
    expect(await receive(announced('payout.paid', { amount }))).toMatchObject({ outcome: 'processed' });
    expect(handled).toMatchObject([{ data: { amount } }]);
  },
);

test('an event of onOther has a key of at most 255 characters', async () => {
  const store = memoryStore();
  const { receive, receiver } = serve(
    { states: { ...states, 'charge.paid': 'OTHER' } },
    { store, onOther: () => undefined },
  );
  const longest = 'x'.repeat(255 - 'other:charge.paid:'.length);
  const outcome = await receive(announced('charge.paid', { id: longest }));
  expect(outcome).toMatchObject({ outcome: 'processed', id: `other:charge.paid:${longest}` });
  expect(await receiver.inspect(String(outcome.id))).toMatchObject({ state: 'handled' });
  for (const id of [`${longest}x`, '😀'.repeat(longest.length + 1)]) {
    expect(await receive(announced('charge.paid', { id }))).toMatchObject({
      outcome: 'invalid',
      issues: [
        { path: ['id'], message: 'Expected a shorter one: `other:charge.paid:` and it have at most 255 characters' },
      ],
    });
  }
});

const at = (timestamp: unknown) => ({
  read: (payload: Payload) => ({ ...read(payload), timestamp }),
});

test.each([
  '2026-01-15T10:30:00.000Z',
  '2026-01-15T10:30:00Z',
  '2026-01-15T13:30:00+03:00',
  '2026-01-15T10:30:00.1234-0530',
])('the time %s of a callback is in its outcome', async (timestamp) => {
  const { receive, logger } = serve(at(timestamp));
  expect(await receive(announced('payout.paid'))).toMatchObject({ outcome: 'processed', timestamp });
  expect(logger.lines).toEqual([]);
});

test.each([
  1768473000,
  1768473000000,
  '1768473000',
  'now',
  '2026-01-15',
  '2026-01-15T10:30:00',
  '2026-13-15T10:30:00Z',
  new Date(0),
  true,
])('the time %j is left out, with one warning for a trusted sender', async (timestamp) => {
  const { receive, handled, logger } = serve(at(timestamp));
  expect(await receive(announced('payout.paid'), { verify: () => false })).toMatchObject({ outcome: 'unauthorized' });
  for (const id of [7, 8]) {
    const outcome = await receive(announced('payout.paid', { id }));
    expect(outcome).toMatchObject({ outcome: 'processed', timestamp: undefined });
  }
  // Your own fields are yours.
  expect(handled).toMatchObject([{ data: { id: '7', timestamp } }, { data: { id: '8', timestamp } }]);
  expect(logger.lines.slice(1)).toMatchObject([
    {
      level: 'warn',
      details: { id: '7', delivery: expect.any(String) as string },
      message: containing(
        'Expected `read` to return `timestamp` as ISO 8601 with `Z` or an offset; this is logged once.',
      ),
    },
  ]);
});

test.each([undefined, null, ''])('a callback without a time has none: %j', async (timestamp) => {
  const { receive, logger } = serve(at(timestamp));
  expect(await receive(announced('payout.paid'))).toMatchObject({ outcome: 'processed', timestamp: undefined });
  expect(logger.lines).toEqual([]);
});
