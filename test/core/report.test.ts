import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { inspect } from 'node:util';
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { Logger, TransferCallbackOutcome } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { receiverOf, recorder } from './support.js';

afterEach(() => {
  vi.restoreAllMocks();
});

describe('an outcome', () => {
  test('cannot be changed by whoever it is reported to: a failure stays a failure', async () => {
    const forge = (outcome: unknown): void => {
      (outcome as { outcome: string }).outcome = 'processed';
    };
    subscribe('transfer-callbacks:outcome', forgeSilently);
    function forgeSilently(message: unknown): void {
      try {
        forge(message);
      } catch {
        // A subscriber that throws would end the process, by Node's own rule.
      }
    }
    const logger: Logger = { warn: forge, error: forge };
    const receiver = receiverOf({ logger, onOutcome: forge, onSuccess: () => Promise.reject(new Error('no')) });
    const outcome = await receiver.receive(transferSucceeded());
    unsubscribe('transfer-callbacks:outcome', forgeSilently);
    expect(outcome.outcome).toBe('handler_failed');
    expect(Object.isFrozen(outcome)).toBe(true);
  });

  test('is frozen in its parts, too', async () => {
    const receiver = receiverOf();
    const invalid = await receiver.receive({});
    if (invalid.outcome !== 'invalid') expect.fail();
    expect([invalid.issues, ...invalid.issues].every((part) => Object.isFrozen(part))).toBe(true);
    const callback = transferSucceeded();
    await receiver.receive(callback);
    const conflict = await receiver.receive(transferSucceeded({ ...callback.data, amount: 1 }));
    if (conflict.outcome !== 'conflict') expect.fail();
    expect([conflict.settled, conflict.received].every((part) => Object.isFrozen(part))).toBe(true);
  });

  test('has an externalId of at most 255 characters', async () => {
    const outcome = await receiverOf().receive(transferSucceeded({ externalId: 'x'.repeat(1_000) }));
    expect(outcome.externalId).toBe('x'.repeat(255));
  });
});

describe('a log line', () => {
  test('of an error has its name, message, code and stack, and nothing that hangs on it', async () => {
    const logger = recorder();
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
    ['an object of some kind', { to: '237670000000', message: 7 }, {}],
  ])('of %s that was thrown says what it is', async (_name, thrown, err) => {
    const logger = recorder();
    await receiverOf({ logger, onSuccess: vi.fn().mockRejectedValue(thrown) }).receive(transferSucceeded());
    expect((logger.lines[0]?.details as { err?: object }).err).toEqual(err);
  });

  test('that an async logger fails to write ends no process and no delivery', async () => {
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
  ])('on the console, %s, has its message first and nothing empty behind it', async (_name, logger) => {
    const warn = vi.spyOn(console, 'warn').mockReturnValue();
    vi.stubEnv('NODE_ENV', 'production');
    receiverOf({ logger });
    vi.unstubAllEnvs();
    await receiverOf({ logger }).receive('no callback');
    expect(warn.mock.calls).toEqual([
      ['Transfer callbacks are deduplicated within this process only: use a shared store.'],
      [
        'A transfer callback is not as documented.',
        expect.objectContaining({ issues: [expect.stringMatching(/^body: /)] }),
      ],
    ]);
  });
});
