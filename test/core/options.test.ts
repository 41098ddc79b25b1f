import { describe, expect, test } from 'vitest';
import {
  memoryStore,
  RetryLater,
  TransferCallbackError,
  transferCallbackListener,
  transferCallbackReceiver,
  transferCallbackRouter,
} from 'transfer-callbacks';
import { containing } from '../support/containing.js';

const required = { store: memoryStore(), onSuccess: () => undefined, onFailed: () => undefined };
const ms = (option: string, from: number, to: number, got: string): string =>
  `Expected \`${option}\` to be a whole number from ${from} to ${to}, got ${got}.`;

const refused: [why: string, options: unknown, message: string][] = [
  ['no options', undefined, 'Expected `options` to be an object, got undefined.'],
  ['null', null, 'Expected `options` to be an object, got null.'],
  ['a function', () => undefined, 'Expected `options` to be an object, got a function.'],
  ['no store', { ...required, store: undefined }, 'Expected `store` to be a store, such as memoryStore(), redisStore(client) or pgStore(pool), got undefined.'],
  ['null for a store', { ...required, store: null }, 'Expected `store` to be a store, such as memoryStore(), redisStore(client) or pgStore(pool), got null.'],
  ['a store that is none', { ...required, store: new Map() }, 'Expected `store` to be a store, such as memoryStore(), redisStore(client) or pgStore(pool), got an object.'],
  ['no onSuccess', { ...required, onSuccess: undefined }, 'Expected `onSuccess` to be a function, got undefined.'],
  ['no onFailed', { ...required, onFailed: 'refund' }, 'Expected `onFailed` to be a function, got "refund".'],
  ['a confirm that is no function', { ...required, confirm: true }, 'Expected `confirm` to be a function, got true.'],
  ['an onOutcome that is no function', { ...required, onOutcome: [] }, 'Expected `onOutcome` to be a function, got an array.'],
  ['a schema that is none', { ...required, schema: {} }, 'Expected `schema` to be a schema of zod or another Standard Schema, got an object.'],
  ['a schema that is null', { ...required, schema: null }, 'Expected `schema` to be a schema of zod or another Standard Schema, got null.'],
  ['a logger that is none', { ...required, logger: { warn: () => undefined } }, 'Expected `logger` to be false or an object with warn and error, got an object.'],
  ['logger: true', { ...required, logger: true }, 'Expected `logger` to be false or an object with warn and error, got true.'],
  ['a negative wait', { ...required, inFlightWaitMs: -1 }, ms('inFlightWaitMs', 0, 2_147_481_647, '-1')],
  ['a fraction', { ...required, handlerTimeoutMs: 1.5 }, ms('handlerTimeoutMs', 1, 357_913_941, '1.5')],
  ['no time to verify', { ...required, verifyTimeoutMs: 0 }, ms('verifyTimeoutMs', 1, 2_147_483_647, '0')],
  ['no time to confirm', { ...required, confirmTimeoutMs: 0 }, ms('confirmTimeoutMs', 1, 2_147_483_647, '0')],
  ['a hold that no timer can keep', { ...required, handlerTimeoutMs: 357_913_942 }, ms('handlerTimeoutMs', 1, 357_913_941, '357913942')],
  ['NaN', { ...required, storeTimeoutMs: NaN }, ms('storeTimeoutMs', 1, 9_999, 'NaN')],
  ['null for a number', { ...required, storeTimeoutMs: null }, ms('storeTimeoutMs', 1, 9_999, 'null')],
  ['a number as a string', { ...required, leaseMs: '15000' }, ms('leaseMs', 6_001, 29_999, '"15000"')],
  ['a lease that outlasts the first retry', { ...required, leaseMs: 30_000 }, ms('leaseMs', 6_001, 29_999, '30000')],
  ['a lease of three store deadlines', { ...required, leaseMs: 6_000 }, ms('leaseMs', 6_001, 29_999, '6000')],
  ['a store deadline that no lease can hold', { ...required, storeTimeoutMs: 10_000 }, ms('storeTimeoutMs', 1, 9_999, '10000')],
  ['a store deadline of a third of the lease', { ...required, storeTimeoutMs: 5_000 }, ms('leaseMs', 15_001, 29_999, '15000')],
  ['a retention that the fourth attempt outlasts', { ...required, retentionMs: 90_000 }, ms('retentionMs', 90_001, Number.MAX_SAFE_INTEGER, '90000')],
  ['an option that does not exist', { ...required, onSucess: () => undefined }, 'Unknown option `onSucess`;'],
]; // prettier-ignore

describe.each([
  ['transferCallbackReceiver', transferCallbackReceiver as (options: unknown) => unknown],
  ['transferCallbackRouter', transferCallbackRouter as (options: unknown) => unknown],
  ['transferCallbackListener', transferCallbackListener as (options: unknown) => unknown],
])('%s', (_name, make) => {
  test.each(refused)('refuses %s', (_why, options, message) => {
    const error = thrownBy(() => make(options));
    expect(error).toBeInstanceOf(TransferCallbackError);
    expect(error).toMatchObject({ name: 'TransferCallbackError', code: 'INVALID_ARGUMENT' });
    expect((error as Error).message).toContain(message);
  });
});

describe.each([
  ['transferCallbackRouter', transferCallbackRouter as (options: unknown) => unknown],
  ['transferCallbackListener', transferCallbackListener as (options: unknown) => unknown],
])('%s', (_name, make) => {
  const receiver = transferCallbackReceiver(required);
  test.each<[string, unknown, string]>([
    ['options of a receiver beside a receiver', { receiver, ...required }, 'Unknown option `store`; known are verify, bodyLimitBytes, receiver.'],
    ['a receiver that is none', { receiver: {} }, 'Expected `receiver` to be a receiver, got an object.'],
    ['a verifier that is no function', { receiver, verify: 'secret' }, 'Expected `verify` to be a function or a list of at least one, got a string of 6 characters.'],
    ['an empty list of verifiers', { receiver, verify: [] }, 'Expected `verify` to be a function or a list of at least one, got an array.'],
    ['a list with something else in it', { receiver, verify: [() => true, null] }, 'Expected `verify` to be a function or a list of at least one, got an array.'],
    ['a limit of nothing', { receiver, bodyLimitBytes: 0 }, 'Expected `bodyLimitBytes` to be a whole number from 1 to 9007199254740991, got 0.'],
    ['a limit with a unit', { receiver, bodyLimitBytes: '100kb' }, 'Expected `bodyLimitBytes` to be a whole number from 1 to 9007199254740991, got "100kb".'],
  ])('refuses %s', (_why, options, message) => {
    expect(thrownBy(() => make(options))).toMatchObject({ code: 'INVALID_ARGUMENT', message: containing(message) });
  }); // prettier-ignore
});

test('an unknown option is refused, with the known ones', () => {
  expect(thrownBy(() => transferCallbackReceiver({ ...required, timeout: 5 } as typeof required))).toMatchObject({
    message:
      'Unknown option `timeout`; known are store, onSuccess, onFailed, confirm, schema, onOutcome, logger, ' +
      'verifyTimeoutMs, confirmTimeoutMs, inFlightWaitMs, leaseMs, handlerTimeoutMs, storeTimeoutMs, retentionMs.',
  });
});

test('the defaults are those of the design, and undefined means default', () => {
  for (const options of [required, { ...required, leaseMs: undefined, retentionMs: undefined }]) {
    expect(transferCallbackReceiver(options).options).toMatchObject({
      verifyTimeoutMs: 5_000,
      confirmTimeoutMs: 10_000,
      inFlightWaitMs: 10_000,
      leaseMs: 15_000,
      handlerTimeoutMs: 20_000,
      storeTimeoutMs: 2_000,
      retentionMs: 7 * 24 * 60 * 60 * 1_000,
    });
  }
});

test('the least and the most of each option are accepted', () => {
  const least = { inFlightWaitMs: 0, storeTimeoutMs: 1, leaseMs: 4, handlerTimeoutMs: 1, retentionMs: 90_001 };
  const most = {
    verifyTimeoutMs: 2_147_483_647,
    confirmTimeoutMs: 2_147_483_647,
    inFlightWaitMs: 2_147_473_648,
    storeTimeoutMs: 9_999,
    leaseMs: 29_999,
    handlerTimeoutMs: 357_913_941,
    retentionMs: Number.MAX_SAFE_INTEGER,
  };
  for (const limits of [least, most]) {
    expect(transferCallbackReceiver({ ...required, ...limits }).options).toMatchObject(limits);
  }
});

test('RetryLater has a message, a pause and a cause', () => {
  const cause = new Error('bank is closed');
  expect(new RetryLater()).toMatchObject({ name: 'RetryLater', code: 'RETRY_LATER', retryAfterMs: 30_000 });
  expect(new RetryLater('at night', { retryAfterMs: 60_000, cause })).toMatchObject({
    message: 'at night',
    retryAfterMs: 60_000,
    cause,
  });
  expect(thrownBy(() => new RetryLater('now', { retryAfterMs: 0 }))).toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: containing(ms('retryAfterMs', 1, 2_147_483_647, '0')),
  });
});

function thrownBy(call: () => unknown): unknown {
  try {
    call();
  } catch (error) {
    return error;
  }
  return expect.fail('it did not throw');
}

test('an error about an option carries its parts', () => {
  const make = (): unknown => transferCallbackReceiver({ ...required, leaseMs: '15s' } as never);
  expect(make).toThrow(
    expect.objectContaining({
      option: 'leaseMs',
      expected: 'a whole number from 6001 to 29999',
      got: '"15s"',
      write: 'leaseMs: 15000',
    }),
  );
});
