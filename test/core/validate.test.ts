import { beforeEach, expect, test } from 'vitest';
import { z } from 'zod/v4';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { transferService } from 'transfer-callbacks/client';
import { Unreadable, deleteProtoKeys } from '../../src/core/validate.js';
import { recordingLogger } from '../support/helpers/logger.js';
import { fakeClock, receiverOf } from './support.js';

beforeEach(fakeClock);

test('an invalid callback is reported with places and reasons, without values, and as an error if its sender is verified', async () => {
  const logger = recordingLogger();
  const receiver = receiverOf({ logger });
  const { event, data } = transferSucceeded();
  const drifted = { event, data: { ...data, walletNumber: 237670000000 } };
  const invalid = {
    outcome: 'invalid',
    issues: [{ path: ['data', 'walletNumber'], message: 'Invalid input: expected string, received number' }],
    id: data.id,
    externalId: data.externalId,
    source: 'direct',
    durationMs: 0,
    delivery: expect.any(String) as string,
  };
  expect(await receiver.receive(drifted)).toStrictEqual({ ...invalid, verified: false });
  expect(await receiver.receive(drifted, { verify: () => true })).toStrictEqual({ ...invalid, verified: true });
  expect(logger.lines.map(({ level }) => level)).toEqual(['warn', 'error']);
});

test.each<[string, unknown, object]>([
  ['in data, as numbers', { data: { id: 7, externalId: 8 } }, { id: '7', externalId: '8' }],
  ['beside data', { id: 't-7', externalId: 'p-1', data: 5 }, { id: 't-7', externalId: 'p-1' }],
  ['in a body without data', { externalId: 'p-1' }, { externalId: 'p-1' }],
  [
    'in both places',
    { id: 'e-1', externalId: 'e', data: { id: 't-7', externalId: 'p-1' } },
    { id: 't-7', externalId: 'p-1' },
  ],
  [
    'as a text that a line could not show',
    { data: { id: 't\u202e', externalId: 'p\u202e' } },
    { externalId: 'p\\u{202e}' },
  ],
  ['as a number that is not exact', { id: 2 ** 53 }, {}],
  ['neither text nor number', { data: { id: true, externalId: ['p-1'] } }, {}],
  ['nowhere', 'paid', {}],
])('the log names an invalid callback whose ids are %s', async (_where, callback, ids) => {
  const logger = recordingLogger();
  const schema = z.object({ event: z.literal('paid') }) as never;
  const outcome = await receiverOf({ service: transferService({ payload: schema }), logger }).receive(callback);
  for (const fields of [outcome, logger.lines[0]?.details ?? {}]) {
    const named = Object.entries(fields).filter(([name]) => name === 'id' || name === 'externalId');
    expect(Object.fromEntries(named)).toStrictEqual(ids);
  }
});

test('the log names the field behind a union, or a union in it, of the branch whose event was sent', async () => {
  const money = z.object({ id: z.string(), amount: z.union([z.number(), z.object({ value: z.number() })]) });
  const branches = ['charge.paid', 'payout.paid', 'payout.failed'].map((kind) =>
    z.object({ kind: z.literal(kind), data: money }),
  );
  const one = z.union(branches as never);
  const others = z.object({ kind: z.literal('customer.created') });
  for (const schema of [one, z.union([one, others]), z.union([others, z.union([others, one])])] as never[]) {
    const issuesOf = async (callback: object) => {
      const outcome = await receiverOf({
        service: transferService({ payload: schema }),
        logger: recordingLogger(),
      }).receive(callback);
      return outcome.outcome === 'invalid' ? outcome.issues.map(({ path }) => path.join('.')) : [];
    };
    expect(await issuesOf({ kind: 'payout.paid', data: { id: 7, amount: 5 } })).toEqual(['data.id']);
    expect(await issuesOf({ kind: 'payout.paid', data: { id: '7', amount: { value: '5' } } })).toEqual([
      'data.amount.value',
    ]);
    expect(await issuesOf({ kind: 'payout.lost', data: { id: '7', amount: 5 } })).toEqual(['kind']);
  }
});

test('the reference of the documented callback is not taken for an externalId', async () => {
  const { event, data } = transferSucceeded();
  const outcome = await receiverOf().receive({ event, data: { ...data, externalId: undefined } });
  expect([outcome.id, outcome.externalId]).toEqual([data.id, undefined]);
});

test('a callback is invalid when reading it throws, and the receiver can be closed', async () => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  const receiver = receiverOf();
  expect(await receiver.receive(proxy)).toMatchObject({ outcome: 'invalid', error: expect.any(TypeError) as Error });
  expect(await receiver.close()).toEqual({ unfinished: 0, ids: [] });
});

test('an issue inside a list has the number of its entry', async () => {
  const payload = z.object({ data: z.object({ fees: z.array(z.number()) }) }) as never;
  const { event, data } = transferSucceeded();
  const callback = { event, data: { ...data, fees: [5, 'x'] } };
  const outcome = await receiverOf({ service: transferService({ payload }) }).receive(callback);
  expect(outcome).toMatchObject({ issues: [{ path: ['data', 'fees', 1] }] });
});

test('a body that the host could not read is invalid, and the outcome has the error of the app', async () => {
  const error = new Error('A middleware has consumed the body.');
  const issues = [{ path: [], message: 'The body cannot be read.' }];
  const unread = await receiverOf().receive(new Unreadable('The body cannot be read.', error));
  expect(unread).toMatchObject({ outcome: 'invalid', issues, error });
});

test('JSON is neither refused nor unreadable, whatever its keys are', async () => {
  const text = JSON.stringify(transferSucceeded());
  const keys = '"transfer-callbacks.input":"refused","Symbol(transfer-callbacks.input)":"unreadable"';
  expect(await receiverOf().receive(JSON.parse(`{${keys},${text.slice(1)}`))).toMatchObject({ outcome: 'processed' });
});

test.each([
  ['at the top', '{"__proto__":{"a":1},"b":2}', '{"b":2}'],
  ['in an object', '{"data":{"__proto__":{"a":1},"b":2}}', '{"data":{"b":2}}'],
  ['in an array', '[0,[{"__proto__":null,"b":[]}]]', '[0,[{"b":[]}]]'],
  ['inside another one', '{"__proto__":{"__proto__":{"a":1}}}', '{}'],
  ['written with an escape', '{"\\u005f_proto__":{"a":1}}', '{}'],
])('a __proto__ key %s is deleted', (_where, text, expected) => {
  const value: unknown = JSON.parse(text);
  expect(JSON.stringify(value)).toContain('__proto__');
  deleteProtoKeys(value);
  expect(JSON.stringify(value)).toBe(expected);
});

test('what has no __proto__ key of its own stays as it is, frozen or not', () => {
  const value = { a: [1, { proto: '__proto__', constructor: { prototype: 1 } }], b: null, c: 'x', d: undefined };
  const prototype = { polluted: true };
  const heir = Object.create(prototype) as object;
  const text = JSON.stringify(value);
  const others = [undefined, null, '__proto__', new Uint8Array(3), () => 1];
  for (const each of [value, Object.freeze(value), heir, ...others]) deleteProtoKeys(each);
  expect(JSON.stringify(value)).toBe(text);
  expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
  expect(Object.getPrototypeOf(heir)).toBe(prototype);
  expect({}).not.toHaveProperty('polluted');
});

test('a __proto__ key that is not enumerable is deleted too, and one in a frozen object throws, so that it is not passed on', () => {
  const value = Object.defineProperty({}, '__proto__', { value: { a: 1 }, configurable: true });
  deleteProtoKeys(value);
  expect(Object.hasOwn(value, '__proto__')).toBe(false);
  expect(() => {
    deleteProtoKeys(Object.freeze(JSON.parse('{"__proto__":{"a":1}}')));
  }).toThrow(TypeError);
});

test('a value that contains itself is read once, and values in one another 100 000 deep need no stack', () => {
  const value: Record<string, unknown> = JSON.parse('{"list":[{"__proto__":1}]}') as never;
  value.self = value;
  value.list = [value, value.list];
  deleteProtoKeys(value);
  expect(value.list).toEqual([value, [{}]]);

  const deep = JSON.parse(`${'{"a":'.repeat(100_000)}{"__proto__":1}${'}'.repeat(100_000)}`) as object;
  deleteProtoKeys(deep);
  let innermost = deep as { a?: object };
  while (innermost.a !== undefined) innermost = innermost.a;
  expect(Object.hasOwn(innermost, '__proto__')).toBe(false);
});
