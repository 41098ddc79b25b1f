import { beforeEach, expect, test } from 'vitest';
import { z } from 'zod/v4';
import { transferCallbackSchema } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { transferService } from 'transfer-callbacks/client';
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

test('a callback is invalid when the schema throws', async () => {
  const error = new Error('broken schema');
  const schema = transferCallbackSchema.refine(() => {
    throw error;
  });
  expect(
    await receiverOf({ service: transferService({ payload: schema }) }).receive(transferSucceeded()),
  ).toMatchObject({
    outcome: 'invalid',
    error,
    issues: [{ path: [], message: 'The schema failed' }],
  });
});

test('a callback is invalid when reading it throws, and the receiver can be closed', async () => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  const receiver = receiverOf();
  expect(await receiver.receive(proxy)).toMatchObject({ outcome: 'invalid', error: expect.any(TypeError) as Error });
  expect(await receiver.close()).toEqual({ unfinished: 0, ids: [] });
});

test('an issue inside a list has the number of its entry', async () => {
  const schema = z.object({ data: z.object({ fees: z.array(z.number()) }) }) as never;
  const { event, data } = transferSucceeded();
  expect(
    await receiverOf({ service: transferService({ payload: schema }) }).receive({
      event,
      data: { ...data, fees: [5, 'x'] },
    }),
  ).toMatchObject({
    issues: [{ path: ['data', 'fees', 1] }],
  });
});
