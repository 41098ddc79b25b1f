import { inspect } from 'node:util';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { memoryStore, type TransferCallbackOutcome } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { recordingLogger } from '../support/helpers/logger.js';
import { fakeClock, receiverOf } from '../core/support.js';

beforeEach(fakeClock);
afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

const fail = (): never => {
  throw new Error('disk full');
};

test.each([
  ['throws', fail],
  ['rejects', () => Promise.reject(new Error('disk full'))],
])('a logger that %s ends neither the process nor the delivery', async (_how, log) => {
  const unhandled = vi.fn();
  process.on('unhandledRejection', unhandled);
  const receiver = receiverOf({ logger: { warn: log, error: log }, onSuccess: fail });
  expect(await receiver.receive(transferSucceeded())).toMatchObject({ outcome: 'handler_failed' });
  // Node reports unhandled rejections once the microtasks are done.
  await new Promise((resolve) => setImmediate(resolve));
  await new Promise((resolve) => setImmediate(resolve));
  process.off('unhandledRejection', unhandled);
  expect(unhandled).not.toHaveBeenCalled();
});

test.each([
  ['as the default', undefined],
  ['as the logger', console],
])('the console, %s, gets warnings and errors, the message first and no empty details', async (_name, logger) => {
  const [warn, error, info] = (['warn', 'error', 'info'] as const).map((level) =>
    vi.spyOn(console, level).mockReturnValue(),
  );
  vi.stubEnv('NODE_ENV', 'production');
  const receiver = receiverOf({ logger, onFailed: fail });
  await receiver.receive(transferSucceeded());
  await receiver.receive('no callback');
  await receiver.receive(transferSucceeded({ id: '' }));
  await receiver.receive(transferFailed());
  const undocumented = (issue: RegExp): unknown[] => [
    'A callback is not as expected.',
    expect.objectContaining({ outcome: 'invalid', issues: [expect.stringMatching(issue)] }),
  ];
  expect(warn?.mock.calls).toEqual([
    ['Callbacks are deduplicated within this process only: use a shared store.'],
    undocumented(/^body: /),
    undocumented(/^data\.id: /),
  ]);
  expect(error?.mock.calls).toEqual([
    [
      'The handler of a callback failed.',
      expect.objectContaining({ err: expect.objectContaining({ message: 'disk full' }) as object }),
    ],
  ]);
  expect(info).not.toHaveBeenCalled();
});

test('pino gets a line with its level and its message, and the type of an error that was thrown', async () => {
  const lines: unknown[] = [];
  const logger = pino({ base: null }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const onFailed = () => Promise.reject(new TypeError('no money'));
  const receiver = receiverOf({ logger, onFailed });
  for (const callback of [transferSucceeded(), transferFailed()]) await receiver.receive(callback);
  expect(lines).toMatchObject([
    { level: 30, msg: 'A callback was handled.', outcome: 'processed' },
    { err: { type: 'TypeError', message: 'no money' } },
  ]);
});

test('without a logger nothing is written', async () => {
  const levels = (['warn', 'error', 'info'] as const).map((level) => vi.spyOn(console, level).mockReturnValue());
  await receiverOf({ logger: false, onFailed: fail }).receive(transferFailed());
  await receiverOf({ logger: false }).receive({});
  for (const level of levels) expect(level).not.toHaveBeenCalled();
});

test('no phone number and no bank account is ever logged or reported', async () => {
  const logger = recordingLogger();
  const told: unknown[] = [];
  const receiver = receiverOf({
    logger,
    onOutcome: (outcome) => told.push(outcome),
    onSuccess: () => Promise.reject(new Error('no')),
  });
  const [mobile, bank] = [transferSucceeded(), transferSucceeded({ paymentMethod: 'bank' })];
  for (const callback of [mobile, bank]) {
    await receiver.receive(callback);
    await receiver.receive({ ...callback, data: { ...callback.data, bankAccount: 'IBAN', walletNumber: [1] } });
    await receiver.receive(callback, { verify: () => false });
  }
  const text = inspect([logger.lines, told], { depth: 9 });
  expect(text).toContain(mobile.data.id);
  expect(text).not.toMatch(/237670000000|10005000010123456789|IBAN/);
});

test('the memory store is warned of in production, once', () => {
  const logger = recordingLogger();
  receiverOf({ logger });
  vi.stubEnv('NODE_ENV', 'production');
  receiverOf({ logger, store: { claim: memoryStore().claim } });
  expect(logger.lines).toEqual([]);
  receiverOf({ logger });
  expect(logger.lines).toMatchObject([
    { level: 'warn', message: expect.stringContaining('this process only') as string },
  ]);
});

test('a log line about an error has its name, message, code and stack, and no other property', async () => {
  const logger = recordingLogger();
  const error = Object.assign(new TypeError('Request failed'), {
    code: 'ERR_BAD_REQUEST',
    config: { data: '{"to":"237670000000"}' },
    response: { headers: { authorization: 'Bearer secret' } },
  });
  const outcomes: TransferCallbackOutcome[] = [];
  const onOutcome = (outcome: TransferCallbackOutcome): unknown => outcomes.push(outcome);
  await receiverOf({ logger, onOutcome, onSuccess: () => Promise.reject(error) }).receive(transferSucceeded());
  const { err } = logger.lines[0]?.details as { err: object };
  expect(err).toEqual({ name: 'TypeError', message: 'Request failed', code: 'ERR_BAD_REQUEST', stack: error.stack });
  expect(inspect(logger.lines, { depth: 9 })).not.toMatch(/237670000000|Bearer/);
  // Code that gets the outcome gets the error itself.
  expect(outcomes[0]).toMatchObject({ error });
});

const unreadable = Proxy.revocable({}, {});
unreadable.revoke();
const failing = {
  get(): never {
    throw new Error('a trap');
  },
};

test.each([
  [
    'an error whose message throws',
    Object.defineProperty(new Error('x'), 'message', failing),
    'Reading `message` throws.',
  ],
  ['a revoked Proxy', unreadable.proxy, 'Reading `message` throws.'],
  ['undefined', undefined, '`undefined` was thrown in place of an error.'],
])('a handler that throws %s gets its log line', async (_name, thrown, message) => {
  const logger = recordingLogger();
  const throwIt = (): never => {
    // eslint-disable-next-line @typescript-eslint/only-throw-error -- JavaScript may.
    throw thrown;
  };
  const told: unknown[] = [];
  const receiver = receiverOf({ logger, onSuccess: throwIt, onOutcome: ({ outcome }) => told.push(outcome) });
  await receiver.receive(transferSucceeded());
  const confirming = receiverOf({ logger, confirm: throwIt, onOutcome: ({ outcome }) => told.push(outcome) });
  await confirming.receive(transferSucceeded());
  expect(told).toEqual(['handler_failed', 'unconfirmed']);
  expect(logger.lines).toMatchObject([
    { level: 'error', message: 'The handler of a callback failed.', details: { err: { message } } },
    { level: 'error', message: 'A callback could not be confirmed.', details: { err: { message } } },
  ]);
});

test.each([
  ['a string', 'no money', { message: 'no money' }],
  ['null', null, { message: 'Not an error: object' }],
  ['a number', 42, { message: 'Not an error: number' }],
  ['an object of some kind', { to: '237670000000', message: 7, code: {} }, {}],
  ['an object with a number as its code', { code: 11_000 }, { code: 11_000 }],
])('a log line about %s that was thrown describes it', async (_name, thrown, err) => {
  const logger = recordingLogger();
  await receiverOf({ logger, onSuccess: vi.fn().mockRejectedValue(thrown) }).receive(transferSucceeded());
  const { err: logged } = logger.lines[0]?.details as { err?: object };
  expect(logged && { ...logged }).toStrictEqual(err);
});
