import { beforeEach, expect, test, vi } from 'vitest';
import { z } from 'zod/v4';
import { headerToken, hmacSignature, transferToken } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { defineService, transferService } from 'transfer-callbacks/client';
import { Refused } from '../../src/core/validate.js';
import { fakeClock, later, never, receiverOf, thrownBy } from './support.js';
import { recordingLogger } from '../support/helpers/logger.js';
import { containing } from '../support/helpers/containing.js';

beforeEach(fakeClock);

const errorsPage = 'node_modules/transfer-callbacks/docs/errors.md';

test('a delivery is unauthorized when its verifier returns false, and does not reach the store', async () => {
  const verify = vi.fn(() => false);
  const claim = vi.fn();
  const receiver = receiverOf({ store: { claim } });
  const callback = transferSucceeded();
  expect(await receiver.receive(callback, { verify })).toStrictEqual({
    outcome: 'unauthorized',
    source: 'direct',
    durationMs: 0,
    delivery: expect.any(String) as string,
  });
  expect(await receiver.receive('nonsense', { verify })).toEqual({
    outcome: 'unauthorized',
    issues: [{ path: [], message: 'Invalid input: expected object, received string' }],
    source: 'direct',
    durationMs: 0,
    delivery: expect.any(String) as string,
  });
  expect(verify.mock.calls).toEqual([[callback], [undefined]]);
  expect(claim).not.toHaveBeenCalled();
});

test('the outcome names the verifier that has refused, before the body is read or after it, and its error', async () => {
  const error = new Error('no key server');
  const refused = new Refused('key\u202eServer', error);
  const unauthorized = { outcome: 'unauthorized', refusedBy: 'key\\u{202e}Server', error };
  expect(await receiverOf().receive(refused)).toMatchObject(unauthorized);
  const verify = (): boolean => refused as never;
  expect(await receiverOf().receive(transferSucceeded(), { verify })).toMatchObject(unauthorized);
});

test('a service that has `verify` has at least one verifier, and each is a function', () => {
  const service = defineService({ read: () => ({ ignored: 'none' }), states: { paid: 'SUCCESS', failed: 'FAILED' } });
  const make = (verify: unknown) => receiverOf({ service: { ...service, verify } });
  for (const verify of [isTrusted, [isTrusted], [isTrusted, isTrusted]]) expect(() => make(verify)).not.toThrow();
  for (const verify of [undefined, 'a token', [], ['a token'], [isTrusted, 'a token']]) {
    expect(thrownBy(() => make(verify))).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: containing('Expected `verify` to be a verifier, or a list of at least one'),
    });
  }
});

test('what is wrong with the app is in the outcome, although the sender is refused', async () => {
  const error = new Error('the schema of the app');
  const schema = z.unknown().transform(() => {
    throw error;
  }) as never;
  const receiver = receiverOf({ service: transferService({ payload: schema }) });
  const issues = [{ path: [], message: 'The schema failed' }];
  expect(await receiver.receive(transferSucceeded())).toMatchObject({ outcome: 'invalid', error, issues });
  const refused = await receiver.receive(transferSucceeded(), { verify: () => false });
  expect(refused).toMatchObject({ outcome: 'unauthorized', error, issues });
  const refusal = new Error('no key server');
  const verify = () => {
    throw refusal;
  };
  expect(await receiver.receive(transferSucceeded(), { verify })).toMatchObject({
    outcome: 'unauthorized',
    error: refusal,
  });
});

test('a verifier that never finishes ends as unauthorized after verifyTimeoutMs', async () => {
  const delivery = receiverOf({ verifyTimeoutMs: 700 }).receive(transferSucceeded(), { verify: never });
  await vi.advanceTimersByTimeAsync(700);
  expect(await delivery).toMatchObject({
    outcome: 'unauthorized',
    durationMs: 700,
    error: { code: 'VERIFY_TIMEOUT', message: `No verdict within 700 ms. See ${errorsPage}#verify_timeout.` },
  });
});

test.each([1, { ok: false }, Promise.resolve(false), Promise.resolve({ ok: false })])(
  'a verdict other than true, such as %o, refuses the sender',
  async (verdict) => {
    const onSuccess = vi.fn();
    const verify = (): boolean => verdict as unknown as boolean;
    expect(await receiverOf({ onSuccess }).receive(transferSucceeded(), { verify })).toMatchObject({
      outcome: 'unauthorized',
    });
    expect(onSuccess).not.toHaveBeenCalled();
  },
);

const isTrusted = (): boolean => false;
const hmac = { header: 'x-signature', secrets: 'a-secret-of-a-test' };
const tenants = new Map([['known', isTrusted]]);

test.each<[what: string, given: unknown, message: string]>([
  ['a misspelt `verify`', { verfy: isTrusted }, 'Unknown option `verfy`. Did you mean `verify`?'],
  ['another word for it', { verifier: isTrusted }, 'Unknown option `verifier`. Did you mean `verify`?'],
  [
    'an option that nothing resembles',
    { from: 'queue' },
    'Unknown option `from`; known are source, verify, waitUntil.',
  ],
  ['the verifier of an unknown tenant', { verify: tenants.get('unknown') }, 'Expected `verify` to be a function'],
  ['`verify: null`', { verify: null }, 'Expected `verify` to be a function'],
  ['`verify: false`', { verify: false }, 'Expected `verify` to be a function'],
  ...[headerToken('x-token', 'a-secret-of-a-test'), transferToken('a-secret-of-a-test'), hmacSignature(hmac)].map(
    (verify): [string, unknown, string] => [
      verify.name,
      { verify },
      'of the callback, not a verifier of requests, got',
    ],
  ),
  [
    'a bare function',
    isTrusted,
    'Expected `options` to be an object, got a function. Write `receive(callback, { verify })`.',
  ],
  ['a list', [], 'Expected `options` to be an object, got an array.'],
  ['options that were not awaited', Promise.resolve({ verify: isTrusted }), 'Expected `options` to be an object'],
  ['a source that is no text', { source: 7, verify: () => true }, 'Expected `source` to be a string, got 7.'],
])('with %s in place of its options `receive` trusts nobody, and logs an error', async (_what, given, message) => {
  const [onSuccess, claim, confirm] = [vi.fn(), vi.fn(), vi.fn()];
  const logger = recordingLogger();
  const receiver = receiverOf({ store: { claim }, onSuccess, confirm, logger });
  const outcome = await receiver.receive(transferSucceeded(), given as never);
  expect(outcome).toEqual({
    outcome: 'unauthorized',
    error: expect.objectContaining({ code: 'INVALID_ARGUMENT', message: containing(message) }) as Error,
    source: 'direct',
    durationMs: 0,
    delivery: outcome.delivery,
  });
  for (const call of [onSuccess, claim, confirm]) expect(call).not.toHaveBeenCalled();
  expect(logger.lines).toMatchObject([
    {
      level: 'error',
      message: 'A callback was refused: `receive` was called with wrong options.',
      details: { outcome: 'unauthorized', err: { code: 'INVALID_ARGUMENT', message: containing(message) } },
    },
  ]);
  expect(await receiver.close()).toEqual({ unfinished: 0, ids: [] });
});

test('`receive` does not reject, even if its options throw when they are read', async () => {
  const error = new Error('a getter of the app');
  const throwing = {
    get verify(): never {
      throw error;
    },
  };
  expect(await receiverOf().receive(transferSucceeded(), throwing)).toMatchObject({ outcome: 'unauthorized', error });
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  expect(await receiverOf().receive(transferSucceeded(), proxy)).toMatchObject({ outcome: 'unauthorized' });
});

test('options of a class are read, and nothing is misspelt in them', async () => {
  class Queue {
    readonly source = 'queue';
    verify(): boolean {
      return true;
    }
  }
  const outcome = await receiverOf().receive(transferSucceeded(), new Queue());
  expect(outcome).toMatchObject({ outcome: 'processed', source: 'queue' });
});

test('close waits for a delivery that is being verified', async () => {
  const verdict = later<boolean>();
  const receiver = receiverOf();
  const delivery = receiver.receive(transferSucceeded(), { verify: () => verdict.promise });
  const closed = vi.fn();
  void receiver.close().then(closed);
  await vi.advanceTimersByTimeAsync(3_000);
  expect(closed).not.toHaveBeenCalled();
  verdict.resolve(true);
  expect(await delivery).toMatchObject({ outcome: 'closing' });
  await vi.advanceTimersByTimeAsync(0);
  expect(closed).toHaveBeenCalledWith({ unfinished: 0, ids: [] });
});
