import { expect, test, vi } from 'vitest';
import { memoryStore } from 'transfer-callbacks';
import { toResponse } from '../../src/http/responses.js';
import { containing } from '../support/helpers/containing.js';
import { announced, read, serve, states } from './service-support.js';

const paid = announced('payout.paid');
const finalAt = '2026-01-15T10:30:00.000Z';

test('a handler gets the ids as strings, the facts, the status, and all else that read returns', async () => {
  const withMore = (payload: typeof paid) => ({
    ...read(payload),
    status: 'PAID',
    fee: { cents: 5 },
    timestamp: finalAt,
  });
  const { receive, handled } = serve({ read: withMore });
  expect(await receive(paid)).toMatchObject({
    outcome: 'processed',
    event: 'transfer.success',
    status: 'SUCCESS',
    id: '7',
    externalId: 'payout-1',
    timestamp: finalAt,
  });
  expect(await receive(announced('payout.bounced', { id: 8 }))).toMatchObject({ outcome: 'processed', id: '8' });
  const data = { id: '7', externalId: 'payout-1', amount: 100, currency: 'XAF', fee: { cents: 5 }, timestamp: finalAt };
  expect(handled).toEqual([
    { event: 'transfer.success', data: { ...data, status: 'SUCCESS' } },
    { event: 'transfer.failed', data: { ...data, id: '8', status: 'FAILED' } },
  ]);
});

test.each<[string, unknown, got: string]>([
  ['nothing', undefined, 'undefined'],
  ['null', null, 'null'],
  ['a string', 'payout.paid', '"payout.paid"'],
])('a callback of which read returns %s is invalid, and loud if its sender is verified', async (_what, made, got) => {
  const { receive, handled, logger } = serve({ read: () => made });
  const outcome = await receive(paid);
  expect(outcome).toMatchObject({
    outcome: 'invalid',
    issues: [{ path: [], message: `Expected \`read\` to return an object with a \`state\`, got ${got}` }],
  });
  expect(toResponse(outcome).status).toBe(400);
  await receive(paid, { verify: () => true });
  expect(logger.lines.map(({ level }) => level)).toEqual(['warn', 'error']);
  expect(handled).toEqual([]);
});

test.each([
  ['resolves', () => Promise.resolve({ state: 'payout.paid', id: '7', externalId: 'p' })],
  ['rejects', () => Promise.reject(new Error('no database today'))],
])('a read whose promise %s is a fault of the app, and ends no process', async (_how, readLater) => {
  const { receive, handled, logger } = serve({ read: readLater });
  const outcome = await receive(paid);
  expect(outcome).toMatchObject({
    outcome: 'invalid',
    issues: [{ path: [], message: '`read` is not synchronous' }],
    error: { code: 'INVALID_ARGUMENT', message: containing('Expected `read` to be synchronous, got a promise.') },
  });
  expect(toResponse(outcome).status).toBe(500);
  expect(logger.lines).toMatchObject([{ level: 'error', message: containing('at fault') }]);
  expect(handled).toEqual([]);
  // An unhandled rejection would fail the run.
  await new Promise((resolve) => setImmediate(resolve));
});

const phone = '+237 699 000 000';

test.each<[string, () => unknown, message: string]>([
  ['a field of nothing', () => (undefined as unknown as typeof paid).data.id, "TypeError (reading 'data')"],
  ['an error of yours', () => expectNever(new RangeError(`no ${phone}`)), 'RangeError'],
  ['a value', () => expectNever(phone), 'Error'],
])('a read that throws for %s is told by the kind of its error, without a value', async (_what, throws, kind) => {
  const { receive, handled } = serve({ read: throws });
  const outcome = await receive(paid);
  expect(outcome).toMatchObject({ outcome: 'invalid', issues: [{ path: [], message: `Reading it threw ${kind}` }] });
  expect(JSON.stringify([outcome, toResponse(outcome)])).not.toContain('699 000');
  expect(handled).toEqual([]);
});

function expectNever(thrown: unknown): never {
  throw thrown;
}

const longest = 'x'.repeat(60);

test.each<[unknown, shown: string]>([
  ...['payout.lost', 'PAYOUT.PAID', 'payout.paid ', 'constructor', '__proto__', 'toString', longest].map(
    (state): [string, string] => [state, state],
  ),
  ['', '""'],
  [`${longest}x`, 'a string of 61 characters'],
  ['\npaid', 'a string of 5 characters'],
  ['paid\u202e', 'a string of 5 characters'],
  [undefined, 'undefined'],
  [null, 'null'],
])(
  'a callback of the state %j, which the definition does not name, is invalid and has its ids',
  async (state, shown) => {
    const { receive, handled } = serve({ read: (payload: typeof paid) => ({ ...read(payload), state }) });
    const outcome = await receive(paid);
    const issues = [{ path: ['state'], message: `Expected a key of \`states\`, got ${shown}` }];
    expect(outcome).toMatchObject({ outcome: 'invalid', id: '7', externalId: 'payout-1', issues });
    expect(toResponse(outcome)).toMatchObject({ status: 400, body: containing('See state.') });
    expect(handled).toEqual([]);
  },
);

test('a list, an object, a boolean or nothing is no state, even if its text is one', async () => {
  const named = { ...states, true: 'SUCCESS', null: 'SUCCESS', undefined: 'SUCCESS', NaN: 'SUCCESS' };
  const unprintable = { toString: 5 };
  for (const state of [['payout.paid'], { toString: () => 'payout.paid' }, unprintable, true, null, undefined, NaN]) {
    const { receive, handled } = serve({
      read: (payload: typeof paid) => ({ ...read(payload), state }),
      states: named,
    });
    expect(await receive(paid)).toMatchObject({ outcome: 'invalid', id: '7', issues: [{ path: ['state'] }] });
    expect(handled).toEqual([]);
  }
});

test('states may be numbers, and a number and its digits are one state', async () => {
  const { receive, handled } = serve({
    states: { 0: 'SUCCESS', 17: 'FAILED' },
    read: ({ code, id }: { code: unknown; id: string }) => ({ state: code, id, externalId: id }),
  });
  for (const [index, code] of [0, '0', 17, '17'].entries()) {
    expect(await receive({ code, id: `p-${index}` })).toMatchObject({ outcome: 'processed' });
  }
  expect(handled).toMatchObject(['SUCCESS', 'SUCCESS', 'FAILED', 'FAILED'].map((status) => ({ data: { status } })));
  expect(await receive({ code: 1, id: 'p-4' })).toMatchObject({ outcome: 'invalid', id: 'p-4' });
});

test('a change of the states after the definition changes nothing', async () => {
  const changing: Record<string, string> = { ...states };
  const { receive, handled } = serve({ states: changing });
  changing['payout.paid'] = 'FAILED';
  await receive(paid);
  expect(handled).toMatchObject([{ event: 'transfer.success' }]);
});

test('ids may be whole numbers of at most 2^53 - 1, and a copy may have them as strings', async () => {
  const { receive, handled } = serve();
  const largest = Number.MAX_SAFE_INTEGER;
  expect(await receive(announced('payout.paid', { id: largest, reference: 0 }))).toMatchObject({
    outcome: 'processed',
    id: '9007199254740991',
    externalId: '0',
  });
  expect(await receive(announced('payout.paid', { id: String(largest), reference: '0' }))).toMatchObject({
    outcome: 'duplicate',
  });
  expect(await receive(announced('payout.paid', { id: 2n ** 53n }))).toMatchObject({ id: '9007199254740992' });
  expect(handled).toHaveLength(2);
});

const notExact = 'Expected a string, or a whole number of at most 2^53 - 1: larger ones are not parsed exactly';
const correctIt = '. If the service has renamed the field of your id, correct `read`';

const noId = 'Expected a string or a whole number, got';

test.each<[object, path: string, message: string, ids: object]>([
  [{ id: 2 ** 53 }, 'id', notExact, { externalId: 'payout-1' }],
  [{ id: 1.5 }, 'id', notExact, { externalId: 'payout-1' }],
  [{ id: null }, 'id', `${noId} null`, { externalId: 'payout-1' }],
  [{ id: { value: 7 } }, 'id', `${noId} object`, { externalId: 'payout-1' }],
  [{ id: 'a\u202eb' }, 'id', 'Expected 1 to 255 characters, none of them', { externalId: 'payout-1' }],
  [{ id: '' }, 'id', `${noId} an empty string`, { externalId: 'payout-1' }],
  [{ reference: '' }, 'externalId', `${noId} an empty string${correctIt}`, { id: '7' }],
  [{ reference: null }, 'externalId', `${noId} null${correctIt}`, { id: '7' }],
  [{ reference: undefined }, 'externalId', `${noId} undefined${correctIt}`, { id: '7' }],
  [{ reference: 2 ** 53 }, 'externalId', `${notExact}${correctIt}`, { id: '7' }],
])('the ids of %j are invalid, and the message names what to write', async (changes, path, message, ids) => {
  const { receive, handled } = serve();
  for (const event of ['payout.paid', 'payout.bounced']) {
    const outcome = await receive(announced(event, changes));
    expect(outcome).toMatchObject({ outcome: 'invalid', issues: [{ path: [path], message: containing(message) }] });
    expect({ ...(outcome.id !== undefined && { id: outcome.id }), externalId: outcome.externalId }).toEqual({
      externalId: undefined,
      ...ids,
    });
    expect(toResponse(outcome).status).toBe(400);
  }
  expect(handled).toEqual([]);
});

test.each(['amount', 'currency'].flatMap((path) => [undefined, null, ''].map((value) => [path, value] as const)))(
  'a success without what read names is invalid, and a failure is not: %s of %j',
  async (path, value) => {
    const { receive, handled } = serve();
    const message = 'Expected a value of a transfer that has succeeded, got none';
    expect(await receive(announced('payout.paid', { [path]: value }))).toMatchObject({
      outcome: 'invalid',
      id: '7',
      issues: [{ path: [path], message }],
    });
    expect(handled).toEqual([]);
    expect(await receive(announced('payout.bounced', { [path]: value }))).toMatchObject({ outcome: 'processed' });
    expect(handled).toMatchObject([{ event: 'transfer.failed', data: { [path]: undefined } }]);
  },
);

test.each<[object, string, string]>([
  [{ amount: { value: 5 } }, 'amount', 'Expected a number or a string, got a value of type object'],
  [{ amount: 5n }, 'amount', 'Expected a number or a string, got a value of type bigint'],
  [{ amount: 2 ** 53 }, 'amount', 'larger ones are not parsed exactly'],
  [{ amount: 1e309 }, 'amount', 'larger ones are not parsed exactly'],
  [{ currency: 950 }, 'currency', 'Expected a string, got a value of type number'],
])('money of another kind is invalid, whatever the state: %o', async (changes, path, message) => {
  const { receive, handled } = serve();
  for (const event of ['payout.paid', 'payout.bounced']) {
    expect(await receive(announced(event, changes))).toMatchObject({
      outcome: 'invalid',
      issues: [{ path: [path], message: containing(message) }],
    });
  }
  expect(handled).toEqual([]);
});

test('read may leave out amount and currency, and a copy that has one is a conflict', async () => {
  const short = ({ id, amount }: { id: string; amount?: number }) => ({
    ...{ state: 'payout.paid', id, externalId: 'p-1' },
    ...(amount !== undefined && { amount }),
  });
  const { receive, handled } = serve({ read: short });
  expect(await receive({ id: 't-7' })).toMatchObject({ outcome: 'processed' });
  expect(await receive({ id: 't-7' })).toMatchObject({ outcome: 'duplicate' });
  // Where one of two has an amount, they differ.
  expect(await receive({ id: 't-7', amount: 5 })).toMatchObject({
    outcome: 'conflict',
    recorded: { status: 'SUCCESS', externalId: 'p-1' },
    received: { status: 'SUCCESS', amount: 5, externalId: 'p-1' },
  });
  expect(handled).toHaveLength(1);
});

test('a state that is OTHER is an event of onOther, once for each state and id', async () => {
  const onOther = vi.fn();
  const store = memoryStore();
  const claim = vi.spyOn(store, 'claim');
  const withOther = { ...states, 'charge.paid': 'OTHER', 'charge.refunded': 'OTHER' };
  const { receive, handled } = serve({ states: withOther }, { onOther, store });
  const charge = announced('charge.paid', { reference: null, amount: undefined });
  expect(await receive(charge)).toMatchObject({
    outcome: 'processed',
    event: 'other',
    type: 'charge.paid',
    id: 'other:charge.paid:7',
  });
  for (const [event, outcome] of [
    ['charge.paid', 'duplicate'],
    ['charge.refunded', 'processed'],
    // The transfer of the same id has a record of its own.
    ['payout.paid', 'processed'],
  ]) {
    const { data } = event === 'payout.paid' ? paid : charge;
    expect([event, (await receive({ event, data })).outcome]).toEqual([event, outcome]);
  }
  expect(onOther.mock.calls).toMatchObject([
    [{ event: 'other', type: 'charge.paid', data: { id: '7', externalId: undefined, currency: 'XAF' } }, {}],
    [{ event: 'other', type: 'charge.refunded', data: { id: '7' } }, {}],
  ]);
  expect(handled).toMatchObject([{ event: 'transfer.success' }]);
  expect(new Set(claim.mock.calls.map(([key]) => key))).toEqual(
    new Set(['other:charge.paid:7', 'other:charge.refunded:7', '7']),
  );
  expect(await receive({ event: 'charge.paid', data: { id: null } })).toMatchObject({ issues: [{ path: ['id'] }] });
  // Reconciliation makes no such event.
  const reconciled = await receive(charge, { source: 'reconciliation' });
  expect(reconciled).toMatchObject({ outcome: 'invalid', issues: [{ path: ['event'] }] });
});
