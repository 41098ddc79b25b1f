// How what a service sends, and what it responds with, is read: by the schema of the payload, and by `read`.
import { expect, test, vi } from 'vitest';
import { z } from 'zod/v4';
import { toResponse } from '../../src/http/responses.js';
import { containing } from '../support/helpers/containing.js';
import { announced, read, serve, states } from './service-support.js';

const paid = announced('payout.paid');

test('a payload schema is told by its issues, and read gets what it makes', async () => {
  const payload = z.object({
    event: z.string(),
    data: z.object({
      id: z.number(),
      reference: z.string(),
      amount: z.string().transform(Number),
      currency: z.string(),
    }),
  });
  const { receive, handled } = serve({ payload });
  expect(await receive(announced('payout.paid', { amount: '100' }))).toMatchObject({ outcome: 'processed' });
  expect(handled).toMatchObject([{ data: { amount: 100 } }]);
  const outcome = await receive(paid);
  expect(outcome).toMatchObject({ outcome: 'invalid', issues: [{ path: ['data', 'amount'] }] });
  expect(toResponse(outcome).status).toBe(400);
});

function fail(): never {
  throw new Error('a fault of the app');
}

test.each<[string, object, why: string]>([
  ['is asynchronous by zod', z.object({ event: z.string() }).refine(() => Promise.resolve(true)), 'Promise'],
  [
    'is asynchronous by Standard Schema',
    { '~standard': { validate: () => Promise.reject(new Error('no reply')) } },
    'Expected `payload` to be synchronous.',
  ],
  ['throws', z.unknown().transform(fail), 'a fault of the app'],
])('a payload schema that %s is a fault of the app, which names `payload`', async (_what, payload, why) => {
  const { receive, handled, logger } = serve({ payload });
  const outcome = await receive(paid);
  expect(outcome).toMatchObject({
    outcome: 'invalid',
    issues: [{ path: [], message: 'The schema `payload` failed' }],
    error: { message: containing(why) },
  });
  expect(toResponse(outcome).status).toBe(500);
  expect(logger.lines).toMatchObject([{ level: 'error', message: containing('at fault') }]);
  expect(handled).toEqual([]);
});

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

const at = (timestamp: unknown) => ({
  read: (payload: typeof paid) => ({ ...read(payload), timestamp }),
});

test.each([
  '2026-01-15T10:30:00.000Z',
  '2026-01-15T10:30:00Z',
  '2026-01-15T10:30Z',
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
  ' 2026-01-15T10:30:00Z',
  '2026-01-15T10:30:00Z (UTC)',
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

/** A receiver that asks its service, which tells this of every transfer. */
function asking(told: unknown, definition: object = {}, options: object = {}) {
  const query = vi.fn(() => Promise.resolve(told));
  return { ...serve({ ...definition, query }, { confirm: true, ...options }), query };
}

test('the handler gets what the service was asked for, read as a callback, and not what was sent', async () => {
  const { receive, handled, query } = asking(announced('payout.paid', { amount: '100.00' }));
  expect(await receive(paid)).toMatchObject({ outcome: 'processed' });
  expect(query.mock.calls).toMatchObject([['7', expect.any(Function)]]);
  expect(handled).toMatchObject([{ event: 'transfer.success', data: { id: '7', amount: '100.00' } }]);
});

test('what needs no handler is not asked for', async () => {
  const { receive, query } = asking(paid);
  expect(await receive(announced('payout.waiting'))).toMatchObject({ outcome: 'ignored' });
  expect(query).not.toHaveBeenCalled();
});

test('what was queried is read as a callback, and an event of onOther does not confirm', async () => {
  const query = () => undefined;
  const read = ({ data: { id, status } }: { data: { id: number; status: string } }) => ({
    state: status,
    id,
    externalId: id,
  });
  const withOther = { read, query, states: { ...states, charge: 'OTHER' } };
  const confirmBy = (callback: unknown) => {
    const confirm = () => callback;
    return serve(withOther, { confirm, onOther: () => undefined }).receive({ data: { id: 7, status: 'payout.paid' } });
  };
  expect(await confirmBy({ event: 'any', data: { id: 7, status: 'payout.paid' } })).toMatchObject({
    outcome: 'processed',
  });
  expect(await confirmBy({ id: 7, status: 'payout.paid' })).toMatchObject({ outcome: 'unconfirmed' });
  expect(await confirmBy({ data: { id: 7, status: 'charge' } })).toMatchObject({
    outcome: 'unconfirmed',
    error: { code: 'UNCONFIRMED', message: containing('The transfer that was read is no callback: It is not final.') },
  });
});

test('a key `__proto__` of what was queried reaches no handler', async () => {
  const hostile = JSON.stringify(announced('payout.paid', { note: { inner: 5 } })).replace('"inner"', '"__proto__"');
  const read = ({ event, data }: typeof paid): object => ({ state: event, ...data, externalId: data.reference });
  const { receive, handled } = asking(JSON.parse(hostile), { read });
  expect(await receive(paid)).toMatchObject({ outcome: 'processed' });
  const [{ data }] = handled as [{ data: { note: object } }];
  expect(Object.hasOwn(data.note, '__proto__')).toBe(false);
});
