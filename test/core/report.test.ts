import { beforeEach, expect, test, vi } from 'vitest';
import type { TransferCallbackOutcome, Logger } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { logFields } from '../../src/core/report.js';
import { recordingLogger } from '../support/helpers/logger.js';
import { fakeClock, receiverOf } from './support.js';
import { listen } from '../support/helpers/listen.js';

beforeEach(fakeClock);

test('every delivery is reported once: to the logger, to onOutcome and to the diagnostics channel', async () => {
  const told: TransferCallbackOutcome[] = [];
  const published: unknown[] = [];
  listen('transfer-callbacks:outcome', (message) => published.push(message));
  const lines: [level: string, details: Record<string, unknown>, message: string][] = [];
  const log = (level: string) => (details: object, message: string) => lines.push([level, { ...details }, message]);
  const receiver = receiverOf({
    // As pino, and unlike the console, it has `info`.
    logger: { info: log('info'), warn: log('warn'), error: log('error') },
    onOutcome: (outcome) => told.push(outcome),
    onFailed: () => Promise.reject(new Error('no')),
  });
  const callback = transferSucceeded();
  const outcomes = [
    await receiver.receive(callback, { source: 'replay' }),
    await receiver.receive(callback),
    await receiver.receive(transferSucceeded({ ...callback.data, amount: 1 })),
    await receiver.receive(transferFailed()),
    await receiver.receive('nonsense', { verify: () => true }),
    await receiver.receive(callback, { verify: () => false }),
  ];
  expect(told).toEqual(outcomes);
  expect(published).toEqual(outcomes);
  expect(lines.map(([level, { outcome }]) => [level, outcome])).toEqual([
    ['info', 'processed'],
    ['info', 'duplicate'],
    ['error', 'conflict'],
    ['error', 'handler_failed'],
    ['error', 'invalid'],
    ['warn', 'unauthorized'],
  ]);
  expect(lines.map(([, { delivery }]) => delivery)).toEqual(outcomes.map(({ delivery }) => delivery));
  expect(new Set(outcomes.map(({ delivery }) => delivery)).size).toBe(outcomes.length);
  for (const [, details] of lines) {
    expect(Object.keys(details)).toEqual([...logFields, 'err'].filter((field) => field in details));
  }
  // All that identifies the delivery and the payout, and no timestamp.
  const { id, externalId } = callback.data;
  expect(lines[0]).toStrictEqual([
    'info',
    {
      delivery: outcomes[0]?.delivery,
      outcome: 'processed',
      id,
      externalId,
      event: 'transfer.success',
      status: 'SUCCESS',
      source: 'replay',
      durationMs: 0,
      waitedMs: 0,
      overlapped: false,
    },
    'A callback was handled.',
  ]);
});

test.each<[string, () => unknown]>([
  [
    'throws',
    () => {
      throw new Error('metrics down');
    },
  ],
  ['rejects', () => Promise.reject(new Error('metrics down'))],
])('an onOutcome that %s is logged and changes nothing', async (_name, onOutcome) => {
  const logger = recordingLogger();
  const receiver = receiverOf({ onOutcome, logger });
  const { outcome, delivery, id } = await receiver.receive(transferSucceeded());
  expect(outcome).toBe('processed');
  await vi.advanceTimersByTimeAsync(0);
  const err = expect.objectContaining({ message: 'metrics down' }) as object;
  expect(logger.lines).toEqual([{ level: 'error', message: '`onOutcome` threw.', details: { delivery, id, err } }]);
  await receiver.receive({});
  await vi.advanceTimersByTimeAsync(0);
  expect(Object.keys(logger.lines.at(-1)?.details ?? {})).toEqual(['delivery', 'err']);
});

test('no listener can change an outcome: a failure stays a failure', async () => {
  const forge = (outcome: unknown): object => {
    Reflect.set(outcome as object, 'outcome', 'processed');
    return { outcome: 'processed' };
  };
  listen('transfer-callbacks:outcome', forge);
  const logger: Logger = { warn: forge, error: forge };
  const receiver = receiverOf({ logger, onOutcome: forge, onSuccess: () => Promise.reject(new Error('no')) });
  const outcome = await receiver.receive(transferSucceeded());
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
  expect([conflict.recorded, conflict.received].every((part) => Object.isFrozen(part))).toBe(true);
});
