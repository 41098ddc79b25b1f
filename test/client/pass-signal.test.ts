import { setTimeout as pause } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { reconcileTransfers } from 'transfer-callbacks/client';
import { receiverOf } from '../core/support.js';
import { final, startQueries, transfers } from './support.js';

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
