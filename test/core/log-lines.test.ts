import { memoryStore, type Logger, type ReceiverOptions } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { logFields } from '../../src/core/report.js';
import { later, receiverOf } from './support.js';

afterEach(() => {
  vi.restoreAllMocks();
});

interface Line {
  readonly level: string;
  readonly message: string;
  readonly details: Record<string, unknown>;
}

/** A logger with `info`, as pino is, and what it was given. */
function infoLogger(): Logger & { lines: Line[] } {
  const lines: Line[] = [];
  const log = (level: string) => (details: object, message: string) => {
    lines.push({ level, message, details: details as Record<string, unknown> });
  };
  return { lines, info: log('info'), warn: log('warn'), error: log('error') };
}

/** Those that a delivery has come in this order. */
const order = [...logFields, 'err'];

describe('a logger with `info`', () => {
  test('gets one line for every delivery, whatever became of it', async () => {
    const logger = infoLogger();
    const receiver = receiverOf({ logger, onFailed: () => Promise.reject(new Error('no')) });
    const callback = transferSucceeded();
    const outcomes = [
      await receiver.receive(callback),
      await receiver.receive(callback),
      await receiver.receive(transferSucceeded({ ...callback.data, amount: 1 })),
      await receiver.receive(transferFailed()),
      await receiver.receive('nonsense', { verify: () => true }),
      await receiver.receive(callback, { verify: () => false }),
    ];
    expect(logger.lines.map(({ level, details }) => [level, details.outcome])).toEqual([
      ['info', 'processed'],
      ['info', 'duplicate'],
      ['error', 'conflict'],
      ['error', 'handler_failed'],
      ['error', 'invalid'],
      ['warn', 'unauthorized'],
    ]);
    expect(logger.lines.map(({ details }) => details.delivery)).toEqual(outcomes.map(({ delivery }) => delivery));
    for (const { details } of logger.lines) {
      expect(Object.keys(details)).toEqual(order.filter((field) => field in details));
    }
  });

  test('gets every field that identifies the delivery and the payout, and no timestamp', async () => {
    const logger = infoLogger();
    const receiver = receiverOf({ logger });
    const { data } = transferSucceeded();
    const { delivery, durationMs } = await receiver.receive(transferSucceeded(data), { source: 'replay' });
    expect(logger.lines).toStrictEqual([
      {
        level: 'info',
        message: 'A transfer callback was handled.',
        details: {
          delivery,
          outcome: 'processed',
          id: data.id,
          externalId: data.externalId,
          event: 'transfer.success',
          status: 'SUCCESS',
          source: 'replay',
          durationMs,
          waitedMs: 0,
          overlapped: false,
        },
      },
    ]);
  });

  test('that throws fails no delivery', async () => {
    const fail = (): never => {
      throw new Error('disk full');
    };
    const receiver = receiverOf({ logger: { info: fail, warn: fail, error: fail } });
    expect(await receiver.receive(transferSucceeded())).toMatchObject({ outcome: 'processed' });
  });
});

test.each<[string, Partial<ReceiverOptions>]>([
  ['by default', {}],
  ['as the logger', { logger: console }],
])('the console, %s, gets no line for a delivery that was acknowledged', async (_name, options) => {
  const printed = (['debug', 'log', 'info', 'warn', 'error'] as const).map((level) =>
    vi.spyOn(console, level).mockReturnValue(),
  );
  const receiver = receiverOf({ logger: undefined, ...options });
  const callback = transferSucceeded();
  await receiver.receive(callback);
  await receiver.receive(callback);
  for (const level of printed) expect(level).not.toHaveBeenCalled();
});

describe('an outcome', () => {
  test('has the timestamp of the callback, as it was given', async () => {
    const timestamp = '2026-03-01T08:00:00.123456Z';
    expect(await receiverOf().receive(transferSucceeded({ timestamp }))).toMatchObject({ timestamp });
  });

  test('has the time that the delivery waited for another one in this process', async () => {
    const started = later();
    const ends = later();
    const receiver = receiverOf({
      async onSuccess() {
        started.resolve();
        await ends.promise;
      },
    });
    const callback = transferSucceeded();
    const first = receiver.receive(callback);
    await started.promise;
    const second = receiver.receive(callback);
    const waitsSince = performance.now();
    await vi.waitUntil(() => performance.now() - waitsSince >= 20);
    ends.resolve();
    expect(await first).toMatchObject({ outcome: 'processed', waitedMs: 0 });
    const duplicate = await second;
    if (duplicate.outcome !== 'duplicate') expect.fail();
    expect(duplicate.waitedMs).toBeGreaterThanOrEqual(20);
    expect(duplicate.waitedMs).toBeLessThanOrEqual(duplicate.durationMs);
  });

  test('has the time that the delivery waited for another process', async () => {
    const store = memoryStore();
    const ends = later();
    const holder = receiverOf({ store, onSuccess: () => ends.promise });
    const callback = transferSucceeded();
    const first = holder.receive(callback);
    const waited = await receiverOf({ store, inFlightWaitMs: 60 }).receive(callback);
    ends.resolve();
    await first;
    if (waited.outcome !== 'in_progress') expect.fail();
    expect(waited.waitedMs).toBeGreaterThanOrEqual(50);
    expect(waited.waitedMs).toBeLessThanOrEqual(waited.durationMs);
  });

  test('of a conflict shows an externalId of at most 255 characters on both sides', async () => {
    const receiver = receiverOf();
    const callback = transferSucceeded({ externalId: 'x'.repeat(1_000) });
    await receiver.receive(callback);
    const outcome = await receiver.receive(transferSucceeded({ ...callback.data, amount: 1 }));
    if (outcome.outcome !== 'conflict') expect.fail();
    for (const side of [outcome.settled, outcome.received]) expect(side?.externalId).toBe('x'.repeat(255));
  });
});
