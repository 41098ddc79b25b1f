import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { TransferCallbackOutcome } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { toLogger } from '../../src/lib/logger.js';
import { recordingLogger } from '../support/logger.js';
import { fakeClock, receiverOf, storeWith } from '../core/support.js';

beforeEach(fakeClock);
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

describe('seeing', () => {
  test('a logger that throws changes nothing', async () => {
    const fail = (): never => {
      throw new Error('disk full');
    };
    const receiver = receiverOf({
      logger: { warn: fail, error: fail },
      onSuccess: () => Promise.reject(new Error('no')),
    });
    expect(await receiver.receive(transferSucceeded())).toMatchObject({ outcome: 'handler_failed' });
  });

  test('the console gets warnings and errors, unless the logger is false', async () => {
    const warn = vi.spyOn(console, 'warn').mockReturnValue();
    const error = vi.spyOn(console, 'error').mockReturnValue();
    const failure = new Error('no');
    for (const logger of [undefined, false] as const) {
      const receiver = receiverOf({ logger, onSuccess: () => Promise.reject(failure) });
      await receiver.receive(transferSucceeded());
      await receiver.receive({});
    }
    expect(error.mock.calls).toEqual([
      [
        'The handler of a transfer callback failed.',
        expect.objectContaining({
          outcome: 'handler_failed',
          err: expect.objectContaining({ message: 'no' }) as object,
        }),
      ],
    ]);
    expect(warn.mock.calls).toEqual([
      [
        'A transfer callback is not as documented.',
        expect.objectContaining({ outcome: 'invalid', issues: [expect.stringMatching(/^event: /)] }),
      ],
    ]);
    vi.restoreAllMocks();
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
    receiverOf({ logger, store: storeWith({}) });
    expect(logger.lines).toEqual([]);
    receiverOf({ logger });
    expect(logger.lines).toMatchObject([
      { level: 'warn', message: expect.stringContaining('this process only') as string },
    ]);
  });
});

describe('a log line', () => {
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

  test.each([
    ['a string', 'no money', { message: 'no money' }],
    ['undefined', undefined, undefined],
    ['null', null, { message: 'Not an error: object' }],
    ['a number', 42, { message: 'Not an error: number' }],
    ['an object of some kind', { to: '237670000000', message: 7, code: {} }, {}],
    ['an object with a number as its code', { code: 11_000 }, { code: 11_000 }],
  ])('a log line about %s that was thrown describes it', async (_name, thrown, err) => {
    const logger = recordingLogger();
    await receiverOf({ logger, onSuccess: vi.fn().mockRejectedValue(thrown) }).receive(transferSucceeded());
    expect((logger.lines[0]?.details as { err?: object }).err).toStrictEqual(err);
  });

  test('an asynchronous logger that rejects ends neither the process nor the delivery', async () => {
    const unhandled = vi.fn();
    process.on('unhandledRejection', unhandled);
    const fail = async (): Promise<void> => {
      await Promise.resolve();
      throw new Error('disk full');
    };
    const receiver = receiverOf({
      logger: { warn: fail, error: fail },
      onSuccess: () => Promise.reject(new Error('no')),
    });
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
  ])('the console, %s, gets the message first and no empty details', async (_name, logger) => {
    const warn = vi.spyOn(console, 'warn').mockReturnValue();
    vi.stubEnv('NODE_ENV', 'production');
    receiverOf({ logger });
    vi.unstubAllEnvs();
    await receiverOf({ logger }).receive('no callback');
    await receiverOf({ logger }).receive(transferSucceeded({ id: '' }));
    expect(warn.mock.calls).toEqual([
      ['Transfer callbacks are deduplicated within this process only: use a shared store.'],
      [
        'A transfer callback is not as documented.',
        expect.objectContaining({ issues: [expect.stringMatching(/^body: /)] }),
      ],
      [
        'A transfer callback is not as documented.',
        expect.objectContaining({ issues: [expect.stringMatching(/^data\.id: /)] }),
      ],
    ]);
  });

  test('a line that must be written is refused without a logger, and the error names the option', async () => {
    await expect(toLogger(false).warnOrReject({}, 'A settled transfer callback is forgotten.')).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: 'Expected `logger` to be a logger, because `forget` must leave a trace, got false.',
    });
  });
});
