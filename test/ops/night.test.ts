// A rehearsed night: the sandbox makes each situation of docs/operations.md, and the metrics and log lines that the runbook
// tells to look at are there.
import { Redis } from 'ioredis';
import { redisStore, transferCallbackListener, transferCallbackReceiver, urlToken } from 'transfer-callbacks';
import { reconcileTransfers, transferClient } from 'transfer-callbacks/client';
import { transferFailed } from 'transfer-callbacks/testing';
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { registerMetrics } from '../metrics/support.js';
import { recordingLogger } from '../support/logger.js';
import { startSandbox } from '../sandbox/support.js';
import { post } from '../support/post.js';
import { serve } from '../support/serve.js';
import { startRedis, type RedisServer } from '../support/redis.js';

const secret = 'the-new-secret-of-the-url';
const oldSecret = 'the-old-secret-of-the-url';

let redis: RedisServer;
beforeEach(async () => {
  redis = await startRedis({ persistent: true });
  return () => redis.stop();
});

/** A merchant's app on Redis, and the service that calls it a thousand times as fast as in real life. */
async function startNight({ accepts = [secret], callsWith = secret } = {}) {
  const { series } = registerMetrics();
  const logger = recordingLogger();
  const booked: string[] = [];
  const client = new Redis(redis.port, '127.0.0.1', { retryStrategy: () => 50, maxRetriesPerRequest: null });
  client.on('error', () => undefined); // The outcomes report it.
  onTestFinished(() => {
    client.disconnect();
  });
  const book = ({ data }: { data: { externalId: string; status: string } }): void => {
    booked.push(`${data.externalId} ${data.status}`);
  };
  const receiver = transferCallbackReceiver({
    store: redisStore(client),
    onSuccess: book,
    onFailed: book,
    logger,
    storeTimeoutMs: 500,
    inFlightWaitMs: 0,
  });
  onTestFinished(async () => {
    await receiver.close({ timeoutMs: 0 });
  });
  const { url, close } = await serve(transferCallbackListener({ receiver, verify: urlToken(accepts) }));
  onTestFinished(close);
  const sandbox = await startSandbox({ speed: 1_000 });
  const service = transferClient({ baseUrl: sandbox.baseUrl, ...sandbox.keys.valid });
  return {
    url,
    redis: client,
    booked,
    lines: logger.lines,
    /** Creates a transfer, and waits until the service has made its last attempt. */
    async pay(externalId: string): Promise<void> {
      await service.createTransfer({ externalId, callbackUrl: `${url}/${callsWith}` });
      await sandbox.idle();
    },
    statuses: () => sandbox.attempts.map(({ answer }) => ('status' in answer ? answer.status : answer.error)),
    reconcile: (id: string) =>
      reconcileTransfers({ client: service, receiver, pending: [{ id, createdAt: Date.now() }], minAgeMs: 0 }),
    async deliveries(outcome: string, source = 'http'): Promise<number> {
      return (await series()).get(`transfer_callbacks_deliveries_total{outcome="${outcome}",source="${source}"}`) ?? 0;
    },
  };
}

test('a missed callback is handled by reconciliation, and counted as missed', async () => {
  const night = await startNight();
  await night.pay('no-callback-1');
  expect(night.booked).toEqual([]);
  expect(await night.reconcile('no-callback-1')).toMatchObject({ processed: 1 });
  expect(night.booked).toEqual(['no-callback-1 SUCCESS']);
  expect(await night.deliveries('processed', 'reconciliation')).toBe(1);
  expect(await night.deliveries('processed')).toBe(0);
});

test('a conflict runs nothing, and its line shows both sides', async () => {
  const night = await startNight();
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
  const night = await startNight();
  const forged = transferFailed();
  expect(await post(`${night.url}/a-guess`, forged)).toMatchObject({ status: 401 });
  expect(await night.deliveries('unauthorized')).toBe(1);
  expect(await night.redis.exists(`transfer-callbacks:${forged.data.id}`)).toBe(0);
  expect(night.booked).toEqual([]);
});

test('while the store is down nothing is handled, and afterwards reconciliation brings what was lost', async () => {
  const night = await startNight();
  await night.pay('success-0');
  await redis.kill();
  await night.pay('success-1');
  expect(night.statuses()).toEqual([200, 503, 503, 503, 503]);
  expect(await night.deliveries('store_unavailable')).toBe(4);
  expect(night.booked).toEqual(['success-0 SUCCESS']);

  await redis.restart();
  await vi.waitUntil(() => night.redis.status === 'ready', { timeout: 20_000 });
  expect(await night.reconcile('success-0')).toMatchObject({ duplicate: 1 });
  // A claim that was sent while the store was down may be granted afterwards, until its release follows it.
  await vi.waitUntil(async () => (await night.reconcile('success-1')).processed === 1, { timeout: 20_000 });
  expect(night.booked).toEqual(['success-0 SUCCESS', 'success-1 SUCCESS']);
});

test('after a rotation in one place only every callback is refused, and with both secrets none is', async () => {
  const wrong = await startNight({ callsWith: oldSecret });
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

  const mended = await startNight({ accepts: [secret, oldSecret], callsWith: oldSecret });
  await mended.pay('success-2');
  expect(mended.statuses()).toEqual([200]);
  expect(await mended.deliveries('processed')).toBe(1);
});

test('the record is readable with redis-cli as the runbook shows it', async () => {
  const night = await startNight();
  await night.pay('success-1');
  const [key = ''] = await night.redis.keys('transfer-callbacks:*');
  expect(await night.redis.get(key)).toMatch(/^settled \S+ .*success-1/);
});
