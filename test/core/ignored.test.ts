import { parse as parseForm } from 'node:querystring';
import { Readable } from 'node:stream';
import { runInNewContext } from 'node:vm';
import { expect, test, vi } from 'vitest';
import { memoryStore } from 'transfer-callbacks';
import { z } from 'zod';
import { toResponse } from '../../src/http/responses.js';
import { containing } from '../support/helpers/containing.js';
import { announced, read, serve } from './service-support.js';

// The two exceptions to «a 2xx only after a handler has succeeded», which the definition of a service declares.

const first = 'A callback was ignored, by the definition of the service; the next of this name are logged as info.';
const further = 'A callback needs no handler, by the definition of the service.';
const ignoreOthers = (payload: ReturnType<typeof announced>): object =>
  payload.event.startsWith('payout.') ? read(payload) : { ignored: payload.event };

/** A receiver of a service that ignores other events, and the calls of its store. */
function setUp(definition: object = {}) {
  const store = memoryStore();
  const calls = [vi.spyOn(store, 'claim'), vi.spyOn(store, 'read')];
  return { ...serve({ read: ignoreOthers, ...definition }, { store }), calls };
}

test('an ignored event is acknowledged without a handler or a record, with a warning for the first of its name', async () => {
  const { receive, handled, logger, calls } = setUp();
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
  for (const call of calls) expect(call).not.toHaveBeenCalled();
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

const inStates = 'Expected a name that is no key of `states`, without regard to case and blanks';

test.each<[string, unknown, message: string]>([
  ['a key of states', 'payout.paid', inStates],
  ['a state that is pending', 'payout.waiting', inStates],
  ['a key of states in another case', 'Payout.Paid', inStates],
  ['a key of states after a blank', ' payout.paid', inStates],
  ['a key of states in capitals before a line break', 'PAYOUT.WAITING\n', inStates],
  ['a key of states around a blank', 'payout. bounced', inStates],
  ['empty', '', 'Expected a name, got ""'],
  ['a number', 7, 'Expected a name, got 7'],
  ['null', null, 'Expected a name, got null'],
])('an event is not ignored under a name that is %s', async (_what, ignored, message) => {
  const { receive, handled } = setUp({ read: () => ({ ignored }) });
  const outcome = await receive(announced('payout.paid'));
  expect(outcome).toMatchObject({ outcome: 'invalid', issues: [{ path: ['ignored'], message }] });
  expect(toResponse(outcome).status).toBe(400);
  expect(handled).toEqual([]);
});

class Sent {
  readonly type = 'customer.created';
}

test.each<[string, make: () => unknown]>([
  ['a list of payouts', () => [announced('payout.paid'), announced('payout.bounced')]],
  ['an empty list', () => []],
  ['an object without members', () => ({})],
  ['a string', () => 'customer.created'],
  ['a number', () => 7],
  ['null', () => null],
  ['nothing', () => undefined],
  ['a Buffer', () => Buffer.from('{"event":"customer.created"}')],
  ['a promise', () => Promise.resolve(announced('customer.created'))],
  ['a request', () => new Request('https://app.example/callbacks')],
  ['a stream', () => Readable.from('{}')],
  ['a Map', () => new Map([['event', 'customer.created']])],
  ['an instance of a class', () => new Sent()],
])('only an object of JSON may be ignored, so %s gets 400, whatever the schema makes of it', async (_what, make) => {
  const payload = z.any().transform(() => announced('customer.created'));
  for (const definition of [{}, { payload }]) {
    const { receive, handled } = setUp({ ...definition, read: () => ({ ignored: 'other' }) });
    const outcome = await receive(make());
    const message = 'Expected an object with a member to ignore';
    expect(outcome).toMatchObject({ outcome: 'invalid', issues: [{ path: [], message: containing(message) }] });
    expect(toResponse(outcome).status).toBe(400);
    expect(handled).toEqual([]);
  }
});

test('the object of a form, and one of another realm, may be ignored', async () => {
  const { receive } = setUp({ read: () => ({ ignored: 'other' }) });
  for (const made of [parseForm('event=customer.created'), runInNewContext('({ event: "customer.created" })')]) {
    expect(await receive(made)).toMatchObject({ outcome: 'ignored' });
  }
});

test('a transfer may come in a list, which is not ignored', async () => {
  const { receive, handled } = setUp({ read: ([event]: [ReturnType<typeof announced>]) => ignoreOthers(event) });
  expect(await receive([announced('payout.paid')])).toMatchObject({ outcome: 'processed' });
  expect(await receive([announced('customer.created')])).toMatchObject({ outcome: 'invalid' });
  expect(handled).toHaveLength(1);
});

test('what has both a state and an ignored name is refused', async () => {
  const both = (payload: ReturnType<typeof announced>) => ({ ...read(payload), ignored: 'not a payout' });
  const { receive, handled } = setUp({ read: both });
  for (const event of ['payout.paid', 'payout.strange']) {
    expect(await receive(announced(event))).toMatchObject({
      outcome: 'invalid',
      issues: [{ path: ['ignored'], message: 'Expected `state` or `ignored`, got both' }],
    });
  }
  expect(handled).toEqual([]);
  // Without a value it is not there.
  const one = setUp({ read: (payload: ReturnType<typeof announced>) => ({ ...both(payload), ignored: undefined }) });
  expect(await one.receive(announced('payout.paid'))).toMatchObject({ outcome: 'processed' });
  const other = setUp({ read: () => ({ state: undefined, ignored: 'customer.created' }) });
  expect(await other.receive(announced('customer.created'))).toMatchObject({ outcome: 'ignored' });
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
  const { receive, receiver, handled, logger, calls } = setUp();
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
  for (const call of calls) expect(call).not.toHaveBeenCalled();
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
