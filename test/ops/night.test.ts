// A rehearsed night: the sandbox makes each situation of docs/operations.md, and the metrics and log lines that the runbook
// tells to look at are there. verdicts.test.ts follows its commands.
import { transferFailed } from 'transfer-callbacks/testing';
import { expect, test, vi } from 'vitest';
import { post } from '../support/post.js';
import { secret, startNight, startRedisBackend } from './support.js';

const oldSecret = 'the-old-secret-of-the-url';

test('a missed callback is handled by reconciliation, and counted as missed', async () => {
  const night = await startNight(await startRedisBackend());
  await night.pay('no-callback-1');
  expect(night.booked).toEqual([]);
  expect(await night.reconcile('no-callback-1')).toMatchObject({ processed: 1 });
  expect(night.booked).toEqual(['no-callback-1 SUCCESS']);
  expect(await night.deliveries('processed', 'reconciliation')).toBe(1);
  expect(await night.deliveries('processed')).toBe(0);
});

test('a conflict runs nothing, and its line shows both sides', async () => {
  const night = await startNight(await startRedisBackend());
  await night.pay('flip-1');
  expect(night.booked).toEqual(['flip-1 FAILED']);
  expect(await night.deliveries('conflict')).toBeGreaterThanOrEqual(1);
  expect(night.lines.find(({ level }) => level === 'error')?.details).toMatchObject({
    outcome: 'conflict',
    externalId: 'flip-1',
    settled: { status: 'FAILED' },
    received: { status: 'SUCCESS' },
  });
  expect(await night.reconcile('flip-1')).toMatchObject({
    failed: 1,
    problems: [{ outcome: 'conflict', settled: { status: 'FAILED' }, received: { status: 'SUCCESS' } }],
  });
});

test('a forged callback is unauthorized and leaves no record', async () => {
  const backend = await startRedisBackend();
  const night = await startNight(backend);
  const forged = transferFailed();
  expect(await post(`${night.url}/a-guess`, forged)).toMatchObject({ status: 401 });
  expect(await night.deliveries('unauthorized')).toBe(1);
  expect(await backend.client.exists(`transfer-callbacks:${forged.data.id}`)).toBe(0);
  expect(night.booked).toEqual([]);
});

test('while the store is down nothing is handled, and afterwards reconciliation brings what was lost', async () => {
  const backend = await startRedisBackend();
  const night = await startNight(backend, { receiver: { storeTimeoutMs: 500 } });
  await night.pay('success-0');
  await backend.server.kill();
  await night.pay('success-1');
  expect(night.statuses()).toEqual([200, 503, 503, 503, 503]);
  expect(await night.deliveries('store_unavailable')).toBe(4);
  expect(night.booked).toEqual(['success-0 SUCCESS']);

  await backend.server.restart();
  await vi.waitUntil(() => backend.client.status === 'ready', { timeout: 20_000 });
  expect(await night.reconcile('success-0')).toMatchObject({ duplicate: 1 });
  // A claim that was sent while the store was down may be granted afterwards, until its release follows it.
  await vi.waitUntil(async () => (await night.reconcile('success-1')).processed === 1, { timeout: 20_000 });
  expect(night.booked).toEqual(['success-0 SUCCESS', 'success-1 SUCCESS']);
});

test('after a rotation in one place only every callback is refused, and with both secrets none is', async () => {
  const wrong = await startNight(await startRedisBackend(), { callsWith: oldSecret });
  await wrong.pay('success-1');
  expect(wrong.statuses()).toEqual([401, 401, 401, 401]);
  expect(await wrong.deliveries('unauthorized')).toBe(4);
  for (const { details } of wrong.lines) {
    expect(details).toMatchObject({
      outcome: 'unauthorized',
      issues: [{ message: 'The sender was refused before the body was read.' }],
    });
  }
  expect(wrong.lines).toHaveLength(4);

  const repaired = await startNight(await startRedisBackend(), { accepts: [secret, oldSecret], callsWith: oldSecret });
  await repaired.pay('success-2');
  expect(repaired.statuses()).toEqual([200]);
  expect(await repaired.deliveries('processed')).toBe(1);
});
