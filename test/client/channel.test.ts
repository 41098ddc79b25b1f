import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { expect, onTestFinished, test } from 'vitest';
import { reconcileTransfers } from 'transfer-callbacks/client';
import { transferSucceeded } from 'transfer-callbacks/testing';
import type { ReconciledMessage } from '../../src/client/reconcile/reconcile.js';
import { receiverOf } from '../core/support.js';

const client = {
  getTransaction: (id: string) =>
    Promise.resolve({ ...transferSucceeded({ id }).data, status: id.startsWith('open') ? 'PENDING' : 'SUCCESS' }),
};

/** What is published on the channel during this test. */
function listen(): ReconciledMessage[] {
  const messages: ReconciledMessage[] = [];
  const keep = (message: unknown): void => void messages.push(message as ReconciledMessage);
  subscribe('transfer-callbacks:reconciled', keep);
  onTestFinished(() => {
    unsubscribe('transfer-callbacks:reconciled', keep);
  });
  return messages;
}

const hourMs = 3_600_000;

test('a pass publishes its report, its duration and when its oldest open transfer was created', async () => {
  const messages = listen();
  const at = Math.floor(Date.now() - hourMs);
  const pending = [
    { id: 'tr-1', createdAt: at - 9 * hourMs },
    { id: 'open-1', createdAt: at - hourMs },
    { id: 'open-2', createdAt: new Date(at - 2 * hourMs) },
    { id: 'open-3', createdAt: Date.now() },
    { id: 'open-4', createdAt: new Date('soon') },
  ];
  const report = await reconcileTransfers({ client, receiver: receiverOf(), pending });
  expect(messages).toEqual([{ report, durationMs: report.durationMs, oldestOpenAt: new Date(at - 2 * hourMs) }]);
  expect(Object.isFrozen(messages[0])).toBe(true);
  expect(report).toMatchObject({ processed: 1, pending: 3, failed: 1 });
  expect(report.durationMs).toBeGreaterThan(0);
});

test('a pass that rejects is published with the report of its error', async () => {
  const messages = listen();
  const pass = reconcileTransfers({
    client,
    receiver: receiverOf(),
    pending: [{ id: 'tr-1', createdAt: 0 }],
    onProgress: () => {
      throw new Error('no');
    },
  });
  await expect(pass).rejects.toMatchObject({ code: 'ON_PROGRESS_FAILED', report: { processed: 1, stopped: 'error' } });
  expect(messages).toMatchObject([{ report: { processed: 1, stopped: 'error' }, oldestOpenAt: undefined }]);
});

test('options that do not fit publish nothing', async () => {
  const messages = listen();
  await expect(reconcileTransfers({ client, receiver: receiverOf(), pending: 5 as never })).rejects.toThrow('pending');
  expect(messages).toEqual([]);
});
