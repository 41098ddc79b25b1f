import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { TransferCallbackOutcome, Logger } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { recordingLogger } from '../support/logger.js';
import { fakeClock, receiverOf } from './support.js';

beforeEach(fakeClock);
afterEach(() => {
  vi.useRealTimers();
});

describe('seeing', () => {
  test('every delivery is reported once, to onOutcome and to the diagnostics channel', async () => {
    const told: TransferCallbackOutcome[] = [];
    const published: unknown[] = [];
    const listen = (message: unknown): void => void published.push(message);
    subscribe('transfer-callbacks:outcome', listen);
    const receiver = receiverOf({ onOutcome: (outcome) => told.push(outcome) });
    const callback = transferSucceeded();
    const responses = [
      await receiver.receive(callback),
      await receiver.receive(callback),
      await receiver.receive({}),
      await receiver.receive(callback, { verify: () => false }),
    ];
    unsubscribe('transfer-callbacks:outcome', listen);
    expect(responses.map(({ outcome }) => outcome)).toEqual(['processed', 'duplicate', 'invalid', 'unauthorized']);
    expect(told).toEqual(responses);
    expect(published).toEqual(responses);
  });

  test.each<[string, () => unknown]>([
    ['throws', () => { throw new Error('metrics down'); }], // prettier-ignore
    ['rejects', () => Promise.reject(new Error('metrics down'))],
  ])('an onOutcome that %s is logged and changes nothing', async (_name, onOutcome) => {
    const logger = recordingLogger();
    const receiver = receiverOf({ onOutcome, logger });
    expect(await receiver.receive(transferSucceeded())).toMatchObject({ outcome: 'processed' });
    await vi.advanceTimersByTimeAsync(0);
    expect(logger.lines).toMatchObject([
      { level: 'error', message: '`onOutcome` threw.', details: { err: { message: 'metrics down' } } },
    ]);
    await receiver.receive({});
    await vi.advanceTimersByTimeAsync(0);
    expect(Object.keys(logger.lines.at(-1)?.details ?? {})).toEqual(['delivery', 'err']);
  });
});

describe('an outcome', () => {
  test('no listener can change an outcome: a failure stays a failure', async () => {
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

  test('the parts of an outcome are frozen', async () => {
    const receiver = receiverOf();
    const invalid = await receiver.receive({});
    if (invalid.outcome !== 'invalid') expect.fail();
    expect([invalid.issues, ...invalid.issues].every((part) => Object.isFrozen(part))).toBe(true);
    expect(invalid.issues.every(({ path }) => Object.isFrozen(path))).toBe(true);
    const callback = transferSucceeded();
    await receiver.receive(callback);
    const conflict = await receiver.receive(transferSucceeded({ ...callback.data, amount: 1 }));
    if (conflict.outcome !== 'conflict') expect.fail();
    expect([conflict.settled, conflict.received].every((part) => Object.isFrozen(part))).toBe(true);
  });

  test('an outcome has an externalId of at most 255 characters', async () => {
    const outcome = await receiverOf().receive(transferSucceeded({ externalId: 'x'.repeat(1_000) }));
    expect(outcome.externalId).toBe('x'.repeat(255));
  });
});
