import { runInNewContext } from 'node:vm';
import { Redis } from 'ioredis';
import { createPool } from 'mysql2/promise';
import { Pool } from 'pg';
import { expect, test, vi } from 'vitest';
import { memoryStore, RetryLater, TransferCallbackError, transferCallbackReceiver } from 'transfer-callbacks';
import { defineService } from 'transfer-callbacks/client';
import { requirePruneAge } from '../../src/core/times.js';
import { containing } from '../support/helpers/containing.js';
import { thrownBy } from './support.js';

const required = { store: memoryStore(), onSuccess: () => undefined, onFailed: () => undefined };
const whole = (from: number, to: number): string => `a whole number from ${from} to ${to}`;
const aStore = 'a store, such as pgStore(pool), redisStore(client), or memoryStore() in a test';
const aFunction = 'a function, because the `service` has neither keys nor a `query` to be asked by';
const aLogger = 'false or an object with warn and error';

test.each<[given: object, expected: string, got: string, option?: string]>([
  [{ store: undefined }, aStore, 'undefined'],
  [{ store: new Map() }, aStore, 'an object'],
  [{ store: Symbol('store') }, aStore, 'a symbol'],
  [{ onSuccess: undefined }, 'a function', 'undefined'],
  [{ onFailed: 'refund' }, 'a function', '"refund"'],
  [{ onOther: 'log' }, 'left out, because no state of the service is OTHER', '"log"'],
  [{ confirm: true }, aFunction, 'true'],
  [{ confirm: { concurrency: 2 } }, aFunction, 'an object'],
  [{ confirm: undefined }, 'true, false, { concurrency, timeoutMs } or a function', 'undefined'],
  [{ confirm: null }, 'true, false, { concurrency, timeoutMs } or a function', 'null'],
  [
    { service: undefined },
    'made by `transferService` or `defineService`, or left out for the documented service',
    'undefined',
  ],
  [{ confirm: 'read' }, 'true, false, { concurrency, timeoutMs } or a function', '"read"'],
  [{ onOutcome: [] }, 'a function', 'an array'],
  [{ logger: { warn: () => undefined } }, aLogger, 'an object'],
  [{ logger: () => undefined }, aLogger, 'a function'],
  [{ inFlightWaitMs: -1 }, whole(0, 2_147_481_647), '-1'],
  [{ handlerTimeoutMs: 1.5 }, whole(1, 357_913_941), '1.5'],
  [{ handlerTimeoutMs: 357_913_942 }, whole(1, 357_913_941), '357913942'],
  [{ verifyTimeoutMs: 0 }, whole(1, 2_147_483_647), '0'],
  [{ confirmTimeoutMs: 0 }, whole(1, 2_147_483_647), '0'],
  [{ storeTimeoutMs: NaN }, whole(1, 9_999), 'NaN'],
  [{ storeTimeoutMs: 10_000 }, whole(1, 9_999), '10000'],
  [{ storeTimeoutMs: 5_000 }, `${whole(1, 4_999)}, a third of \`leaseMs\`, or \`leaseMs\` to be given`, '5000'],
  [{ storeTimeoutMs: 5_000, leaseMs: 15_000 }, whole(15_001, 29_999), '15000', 'leaseMs'],
  [{ leaseMs: 30_000 }, whole(6_001, 29_999), '30000'],
  [{ retentionMs: 90_000 }, whole(90_001, Number.MAX_SAFE_INTEGER), '90000'],
])('a wrong value of an option is refused with what was expected: %o', (given, expected, got, option) => {
  const name = option ?? Object.keys(given)[0];
  const error = thrownBy(() => transferCallbackReceiver({ ...required, ...given }));
  expect(error).toBeInstanceOf(TransferCallbackError);
  expect(error).toMatchObject({
    name: 'TransferCallbackError',
    code: 'INVALID_ARGUMENT',
    message: containing(`Expected \`${name}\` to be ${expected}, got ${got}.`),
    option: name,
    expected,
    got,
  });
});

test('an error about an option has the code to write instead', () => {
  expect(thrownBy(() => transferCallbackReceiver({ ...required, leaseMs: '15s' } as never))).toMatchObject({
    write: 'leaseMs: 15000',
  });
  for (const [confirm, write] of [
    [undefined, 'confirm: isLive'],
    ['read', 'confirm: true'],
  ]) {
    expect(thrownBy(() => transferCallbackReceiver({ ...required, confirm } as never))).toMatchObject({ write });
  }
  const write = 'storeTimeoutMs: 6000, leaseMs: 18001';
  expect(thrownBy(() => transferCallbackReceiver({ ...required, storeTimeoutMs: 6_000 }))).toMatchObject({ write });
  expect(() => transferCallbackReceiver({ ...required, storeTimeoutMs: 6_000, leaseMs: 18_001 })).not.toThrow();
});

test.each(['onSuccess', 'onFailed', 'onReversed', 'onOther'])(
  'the code that is proposed for %s acknowledges nothing',
  async (name) => {
    const service = defineService({
      read: ({ state }: { state: string }) => ({ state, id: 'a', externalId: 'a' }),
      states: { onSuccess: 'SUCCESS', onFailed: 'FAILED', onReversed: 'REVERSED', onOther: 'OTHER' },
    });
    const booked = vi.fn();
    const given = { onSuccess: booked, onFailed: booked, onReversed: booked, onOther: booked };
    const options = { store: memoryStore(), logger: false, service, retentionMs: 60 * 86_400_000, ...given };
    const make = (handler: unknown) => transferCallbackReceiver({ ...options, [name]: handler } as never);
    const { write } = thrownBy(() => make(undefined)) as { write: string };
    const handler: unknown = runInNewContext(`(${write.slice(`${name}: `.length)})`);
    expect(await make(handler).receive({ state: name })).toMatchObject({ outcome: 'handler_failed' });
  },
);

test('confirm: false is a switch that is off', () => {
  const receiver = transferCallbackReceiver({ ...required, confirm: false });
  expect(receiver.options.confirm).toBeUndefined();
});

test.each([undefined, null, () => undefined])('options that are no object are refused: %o', (options) => {
  expect(thrownBy(() => transferCallbackReceiver(options as never))).toMatchObject({ option: 'options' });
});

test.each([
  [{ onFailure: () => undefined }, 'Unknown option `onFailure`. Did you mean `onFailed`?'],
  [{ keyPrefix: 'x' }, 'Unknown option `keyPrefix`; known are store, '],
  [
    { verify: () => true },
    'Unknown option `verify`. It belongs to the router, the listener or the handler: ' +
      '`transferCallbackRouter({ receiver, verify })`.',
  ],
  [{ bodyLimitBytes: 5 }, 'It belongs to the router, the listener or the handler'],
])('an unknown option is refused, with the one that was meant or its place, if that is known: %o', (given, message) => {
  expect(thrownBy(() => transferCallbackReceiver({ ...required, ...given }))).toMatchObject({
    message: containing(message),
  });
});

test.each([
  [new Redis({ lazyConnect: true }), 'redisStore(redis)'],
  [new Pool(), 'pgStore(pool)'],
  [createPool({}), 'mysqlStore(pool)'],
  [{ $transaction: () => undefined }, "prismaStore(prisma, { dialect: 'postgres' })"],
  [new Map(), 'pgStore(pool)'],
])('a client in place of a store is refused with the code that makes a store of it', (store, code) => {
  expect(thrownBy(() => transferCallbackReceiver({ ...required, store: store as never }))).toMatchObject({
    write: `store: ${code}`,
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
  expect(new RetryLater('at night', null).retryAfterMs).toBe(30_000);
  expect(new RetryLater()).toMatchObject({ name: 'RetryLater', code: 'RETRY_LATER', retryAfterMs: 30_000 });
  expect(new RetryLater('at night', { retryAfterMs: 60_000, cause })).toMatchObject({
    message: 'at night',
    retryAfterMs: 60_000,
    cause,
  });
  expect(thrownBy(() => new RetryLater('now', { retryAfterMs: 0 }))).toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: containing(`Expected \`retryAfterMs\` to be ${whole(1, 2_147_483_647)}, got 0.`),
  });
  const pauseFirst = () => new RetryLater(60_000 as never);
  expect(pauseFirst).toThrow(
    "Expected `message` to be a string, got 60000. Write `new RetryLater('The ledger is closed'",
  );
});

test('what is younger than the last attempt of the service is not pruned', () => {
  expect(requirePruneAge(90_001)).toBe(90_001);
  for (const young of [90_000, 0, NaN]) {
    expect(() => requirePruneAge(young)).toThrow(
      'Expected `olderThanMs` to be a whole number from 90001 to 9007199254740991, got ' +
        `${young}. Write \`olderThanMs: 604800000\`.`,
    );
  }
});
