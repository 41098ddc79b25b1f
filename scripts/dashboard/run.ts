// A merchant's app with metrics, the sandbox as its service, and some minutes of their life.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import {
  memoryStore,
  RetryLater,
  transferCallbackListener,
  transferCallbackReceiver,
  urlToken,
} from 'transfer-callbacks';
import { reconcileTransfers, transferClient, type PendingTransfer } from 'transfer-callbacks/client';
import { prometheusMetrics } from 'transfer-callbacks/metrics';
import { transferSandbox, transferScenarios } from 'transfer-callbacks/sandbox';
import { transferSucceeded } from 'transfer-callbacks/testing';

/** Older transfers are reconciled: after the third attempt, if the pauses double. */
const minAgeMs = 100_000;
const token = crypto.randomUUID();

/** The app: handlers that take some time, fail now and then, and open transfers to reconcile. */
function makeMerchant() {
  const open = new Map<string, PendingTransfer>();
  const seen = new Set<string>();
  const handle = async ({ data }: { data: { externalId: string } }): Promise<void> => {
    const { externalId } = data;
    await pause(5 + 300 * Math.random() ** 4);
    const isFirst = !seen.has(externalId);
    seen.add(externalId);
    if (isFirst && externalId.endsWith('-fails')) throw new Error('The database did not reply.');
    if (isFirst && externalId.endsWith('-later')) throw new RetryLater();
    open.delete(externalId);
  };
  const receiver = transferCallbackReceiver({
    store: memoryStore(),
    onSuccess: handle,
    onFailed: handle,
    logger: false,
  });
  return { open, receiver };
}

/** Starts the app and the sandbox. `play` creates transfers of every scenario for `ms`, and reconciles meanwhile. */
export async function startWorld() {
  const registry = new Registry();
  const stopMetrics = prometheusMetrics({ Counter, Gauge, Histogram, registers: [registry] });
  const { open, receiver } = makeMerchant();
  const callbacks = transferCallbackListener({ receiver, verify: urlToken(token) });
  const server = createServer((request, response) => {
    if (request.url !== '/metrics') callbacks(request, response);
    else void registry.metrics().then((text) => response.end(text));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const callbackUrl = `http://${address}/${token}`;
  const sandbox = await transferSandbox();
  const client = transferClient({ baseUrl: sandbox.baseUrl, ...sandbox.keys.valid });

  const create = async (externalId: string): Promise<void> => {
    open.set(externalId, { id: externalId, createdAt: Date.now() });
    await client.createTransfer({ externalId, callbackUrl });
  };
  const forge = async (): Promise<void> => {
    const body = JSON.stringify(transferSucceeded());
    await fetch(`http://${address}/a-guess`, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  };

  return {
    address,
    async play(ms: number): Promise<void> {
      const endsAt = Date.now() + ms;
      for (let second = 0; Date.now() < endsAt; second += 1) {
        const scenario = transferScenarios[(second / 3) % transferScenarios.length]?.name ?? 'success';
        const wanted = [`success-${second}`, `success-${second}-too`];
        if (second % 3 === 0) wanted.push(`${scenario}-${second}-plays`);
        if (second % 20 === 7) wanted.push(`success-${second}-fails`);
        if (second % 30 === 9) wanted.push(`success-${second}-later`);
        await Promise.all(wanted.map(create));
        if (second % 60 > 50) await forge();
        if (second % 20 === 19) await reconcileTransfers({ client, receiver, pending: open.values(), minAgeMs });
        await pause(600 + 800 * Math.random());
      }
    },
    async stop(): Promise<void> {
      stopMetrics();
      await sandbox.close();
      await receiver.close();
      server.closeAllConnections();
      server.close();
    },
  };
}
