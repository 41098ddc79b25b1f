import { expect, test, vi } from 'vitest';
import { memoryStore } from 'transfer-callbacks';
import { toResponse } from '../../src/http/responses.js';
import { announced, read, serve } from './service-support.js';

// The two exceptions to «a 2xx only after a handler has succeeded», which the definition of a service declares.

const first = 'A callback was ignored, by the definition of the service; further ones of this name are logged as info.';
const further = 'A callback needs no handler, by the definition of the service.';
const ignoreOthers = (payload: ReturnType<typeof announced>): object =>
  payload.event.startsWith('payout.') ? read(payload) : { ignored: payload.event };

/** A receiver of a service that ignores other events, on a store that counts what it is asked for. */
function setUp(definition: object = {}) {
  const store = memoryStore();
  const asked = vi.fn();
  const counting = {
    ...store,
    claim: (...given: Parameters<typeof store.claim>) => (asked(), store.claim(...given)),
    read: (key: string) => (asked(), store.read(key)),
  };
  return { ...serve({ read: ignoreOthers, ...definition }, { store: counting }), asked };
}

test('an ignored event is acknowledged without a handler or a record, with a warning for the first of its name', async () => {
  const { receive, handled, logger, asked } = setUp();
  for (const [event, count] of [
    ['customer.created', 1],
    ['customer.created', 2],
    ['invoice.sent', 1],
    ['customer.created', 3],
  ] as const) {
    const outcome = await receive(announced(event));
    expect(outcome).toEqual({
      ...{ outcome: 'ignored', type: event, count, source: 'direct' },
      delivery: expect.any(String) as string,
      durationMs: expect.any(Number) as number,
    });
    expect(toResponse(outcome)).toMatchObject({ status: 200, body: '{"outcome":"ignored"}' });
  }
  expect(logger.lines.map(({ message, details }) => [message, details.type, details.count])).toEqual([
    [first, 'customer.created', 1],
    [first, 'invoice.sent', 1],
  ]);
  expect(logger.info.mock.calls).toMatchObject([
    [{ type: 'customer.created', count: 2 }, further],
    [{ type: 'customer.created', count: 3 }, further],
  ]);
  expect(handled).toEqual([]);
  expect(asked).not.toHaveBeenCalled();
});

test('however many names a stranger sends, the first event of another one is a warning, and 1 000 are counted', async () => {
  const { receive, logger } = setUp();
  await receive(announced('customer.created'));
  const flood = async (count: number) => {
    for (let name = 1; name <= count; name += 1) await receive(announced(`flood.${crypto.randomUUID()}`));
  };
  await flood(999);
  expect(await receive(announced('customer.created'))).toMatchObject({ count: 2 });
  await flood(999);
  expect(await receive(announced('customer.created'))).toMatchObject({ count: 3 });
  expect(await receive(announced('customer.updated'))).toMatchObject({ count: 1 });
  expect(logger.lines.at(-1)).toMatchObject({ message: first, details: { type: 'customer.updated' } });
  await flood(1_000);
  expect(await receive(announced('customer.created'))).toMatchObject({ count: 1 });
});

test.each<[string, unknown, message: string]>([
  ['a key of states', 'payout.paid', 'Expected a name that is no key of `states`'],
  ['a state that is pending', 'payout.waiting', 'Expected a name that is no key of `states`'],
  ['empty', '', 'Expected a name, got ""'],
  ['a number', 7, 'Expected a name, got 7'],
  ['null', null, 'Expected a name, got null'],
  ['true', true, 'Expected a name, got true'],
])('an event is not ignored under a name that is %s', async (_what, ignored, message) => {
  const { receive, handled } = setUp({ read: () => ({ ignored }) });
  const outcome = await receive(announced('payout.paid'));
  expect(outcome).toMatchObject({ outcome: 'invalid', issues: [{ path: ['ignored'], message }] });
  expect(toResponse(outcome).status).toBe(400);
  expect(handled).toEqual([]);
});

test('an ignored name that every object has is a name as another', async () => {
  const { receive } = setUp();
  for (const name of ['constructor', '__proto__']) {
    expect(await receive(announced(name))).toMatchObject({ outcome: 'ignored', type: name, count: 1 });
  }
});

test('a name is shown without characters that change how a line is displayed, and not longer than one', async () => {
  const { receive, logger } = setUp();
  expect(await receive(announced('a\u202eb'))).toMatchObject({ type: 'a\\u{202e}b' });
  expect(await receive(announced('x'.repeat(1_000)))).toMatchObject({ type: 'x'.repeat(255) });
  expect(JSON.stringify(logger.lines)).not.toContain('\u202e');
});

test('a state that is pending is acknowledged with its ids, without a handler or a record', async () => {
  const { receive, receiver, handled, logger, asked } = setUp();
  const waiting = announced('payout.waiting');
  for (let copy = 1; copy <= 2; copy += 1) {
    const outcome = await receive(waiting);
    expect(outcome).toEqual({
      ...{ outcome: 'ignored', type: 'payout.waiting', id: '7', externalId: 'payout-1', source: 'direct' },
      delivery: expect.any(String) as string,
      durationMs: expect.any(Number) as number,
    });
    expect(toResponse(outcome)).toMatchObject({ status: 200, body: '{"outcome":"ignored"}' });
  }
  expect(asked).not.toHaveBeenCalled();
  expect(logger.lines).toEqual([]);
  expect(logger.info.mock.calls).toMatchObject([
    [{ id: '7', externalId: 'payout-1', type: 'payout.waiting' }, further],
    [{}, further],
  ]);
  // Ids that could be no key are none here, too, and their absence is no fault of the transfer.
  expect(await receive(announced('payout.waiting', { id: null, reference: 'p\u202e' }))).toMatchObject({
    outcome: 'ignored',
    externalId: 'p\\u{202e}',
  });
  expect(handled).toEqual([]);
  expect(await receiver.inspect('7')).toEqual({ state: 'free' });
  expect(await receive(announced('payout.paid'))).toMatchObject({ outcome: 'processed' });
});

test('a sender that is refused learns nothing of what is ignored or pending, and is not counted', async () => {
  const { receive, logger } = setUp();
  const verify = vi.fn((callback: unknown) => callback !== undefined);
  for (const event of ['customer.created', 'payout.waiting']) {
    const outcome = await receive(announced(event), { verify });
    expect(outcome).toMatchObject({ outcome: 'unauthorized' });
    expect(outcome).not.toHaveProperty('type');
    expect(outcome).not.toHaveProperty('issues');
    expect(toResponse(outcome).status).toBe(401);
  }
  expect(verify.mock.calls).toEqual([[undefined], [undefined]]);
  expect(logger.info).not.toHaveBeenCalled();
  expect(await receive(announced('customer.created'), { verify: () => true })).toMatchObject({ count: 1 });
});
