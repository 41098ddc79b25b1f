import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test, vi } from 'vitest';
import { reconcileTransfers, type PendingTransfer } from 'transfer-callbacks/client';
import { later, receiverOf } from '../core/support.js';
import { emptyReport, final, old, startKnowing, startQueries, startService, transfers } from './support.js';

describe('reconcileTransfers', () => {
  test('a signal ends the pass: none is taken any more, and the stream is closed', async () => {
    const { client } = await startKnowing();
    const controller = new AbortController();
    let closed = false;
    async function* cursor(): AsyncGenerator<PendingTransfer> {
      try {
        for (let index = 0; ; index += 1) yield Promise.resolve(old(`payout-${index}`));
      } finally {
        closed = true;
      }
    }
    const counted = await reconcileTransfers({
      client,
      receiver: receiverOf(),
      pending: cursor(),
      signal: controller.signal,
      onProgress: (_reconciled, { unknown }) => {
        if (unknown === 5) controller.abort();
      },
    });
    expect(counted.stopped).toBe('aborted');
    expect(counted.unknown).toBeGreaterThanOrEqual(5);
    expect(counted).toMatchObject({ failed: 0 });
    expect(counted.unknown + counted.pending).toBeLessThanOrEqual(10);
    expect(closed).toBe(true);
  });

  test('a signal ends the reading of a service that does not respond, and what was not read is pending', async () => {
    const service = await startService([() => undefined]);
    const controller = new AbortController();
    const pass = reconcileTransfers({
      client: service.client,
      receiver: receiverOf(),
      pending: [old('payout-1'), old('payout-2')],
      signal: controller.signal,
    });
    await vi.waitFor(() => {
      expect(service.received).toHaveLength(2);
    });
    controller.abort();
    expect(await pass).toMatchObject({ ...emptyReport, pending: 2, stopped: 'aborted', cursor: undefined });
  });

  test('a signal, or what onProgress throws, ends a pass whose stream does not go on', async () => {
    const { client } = await startKnowing();
    const controller = new AbortController();
    const goOn = later();
    let closed = 0;
    async function* cursor(): AsyncGenerator<PendingTransfer> {
      try {
        yield old('payout-1');
        await goOn.promise;
      } finally {
        closed += 1;
      }
    }
    const options = { client, receiver: receiverOf(), signal: controller.signal };
    const thrown = reconcileTransfers({
      ...options,
      pending: cursor(),
      onProgress: () => {
        throw new Error('enough');
      },
    });
    await expect(thrown).rejects.toThrow('enough');
    const aborted = reconcileTransfers({ ...options, pending: cursor(), onProgress: () => setImmediate(() => { controller.abort(); }) }); // prettier-ignore
    expect(await aborted).toMatchObject({ unknown: 1, pending: 0, stopped: 'aborted' });
    goOn.resolve();
    await vi.waitFor(() => {
      expect(closed).toBe(2);
    });
  });

  test('a signal that has aborted takes nothing', async () => {
    const { client } = await startKnowing();
    const taken = vi.fn(function* () {
      yield old('payout-1');
    });
    const pending = { [Symbol.iterator]: taken };
    const next = vi.fn(() => ({ done: false as const, value: old('payout-1') }));
    const signal = AbortSignal.abort();
    const ended = { ...emptyReport, stopped: 'aborted', queries: 0, cursor: undefined };
    expect(await reconcileTransfers({ client, receiver: receiverOf(), pending, signal })).toMatchObject(ended);
    const bare = { [Symbol.iterator]: () => ({ next }) };
    expect(await reconcileTransfers({ client, receiver: receiverOf(), pending: bare, signal })).toMatchObject(ended);
    expect(next).not.toHaveBeenCalled();
  });
});

test('an abort while the last transfers are read is reported', async () => {
  const service = await startQueries(() => () => undefined);
  const controller = new AbortController();
  const pass = reconcileTransfers({
    client: service.client,
    receiver: receiverOf(),
    pending: transfers(3),
    signal: controller.signal,
  });
  await vi.waitUntil(() => service.received.length === 3);
  controller.abort();
  expect(await pass).toMatchObject({ pending: 3, stopped: 'aborted', cursor: undefined });
});

test('an abort after everything was read does not count', async () => {
  const { client } = await startQueries(final);
  const controller = new AbortController();
  const report = await reconcileTransfers({
    client,
    receiver: receiverOf(),
    pending: transfers(1),
    signal: controller.signal,
    onProgress: async () => {
      await pause(20); // `pending` ends meanwhile.
      controller.abort();
    },
  });
  expect(report).toMatchObject({ processed: 1, stopped: undefined });
});
