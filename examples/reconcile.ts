import { setTimeout } from 'node:timers/promises';
import { memoryStore, transferCallbackReceiver } from 'transfer-callbacks/node';
import { reconcileTransfers, transferService, type PendingTransfer } from 'transfer-callbacks/client';
import { transferSandbox } from 'transfer-sandbox';
import { payouts } from './payouts.js';

// Imitates the service. Use its address, and your keys from its dashboard.
const sandbox = await transferSandbox({ speed: 1_000, finalAfterMs: 1_000 });

const service = transferService({ baseUrl: sandbox.baseUrl, ...sandbox.keys.valid });

const receiver = transferCallbackReceiver({
  service,
  store: memoryStore(), // In production, the shared store of your router: redisStore(client).
  confirm: true, // Reads each transfer back before a callback is trusted.
  onSuccess: ({ data }) => payouts.markPaid(data.externalId, data.amount),
  onFailed: ({ data }) => payouts.refund(data.externalId, data.failureReason),
});

/** Imitates a cursor over the open payouts in your database. */
async function* openPayouts(): AsyncGenerator<PendingTransfer> {
  for (const id of ['no-callback-1', 'failed-2', 'unheard-of-3']) {
    yield await Promise.resolve({ id, createdAt: Date.now() - 3_600_000 });
  }
}

/** Makes one run. Call it from a timer, as here, or from a script that cron starts. */
async function reconcile(signal?: AbortSignal): Promise<void> {
  const { processed, duplicate, pending, unknown, failed, problems, advice, stopped } = await reconcileTransfers({
    receiver,
    pending: openPayouts(),
    signal,
  });
  console.log(`Reconciled: ${JSON.stringify({ processed, duplicate, pending, unknown, failed })}`);
  for (const { id, error } of problems) console.log(`Look into ${id}: ${String(error)}`);
  if (advice !== undefined) console.log(advice);
  if (stopped !== undefined) console.log(`The run ended early: ${stopped}. The next one reads the rest.`);
}

const stopping = new AbortController();
process.once('SIGTERM', () => {
  stopping.abort();
});

// The transfer's callback URL is unreachable, so every callback is lost.
const callbackUrl = 'http://127.0.0.1:9/callbacks';
await service.createTransfer({ callbackUrl, externalId: 'no-callback-1', amount: 15_000 });
await service.createTransfer({ callbackUrl, externalId: 'failed-2', amount: 900 });

for (let run = 0; run < 2 && !stopping.signal.aborted; run += 1) {
  await setTimeout(50, undefined, { signal: stopping.signal }); // In production, a few minutes.
  await reconcile(stopping.signal);
}
await receiver.close();
await sandbox.close();
