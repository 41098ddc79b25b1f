import { setTimeout } from 'node:timers/promises';
import { memoryStore, transferCallbackReceiver } from 'transfer-callbacks';
import { confirmWith, reconcileTransfers, transferClient, type PendingTransfer } from 'transfer-callbacks/client';
import { transferSandbox } from 'transfer-callbacks/sandbox';
import { payouts } from './payouts.js';

// Stands for the service. Yours has an address, and keys from the dashboard.
const service = await transferSandbox({ speed: 1_000, finalAfterMs: 1_000 });

const client = transferClient({ baseUrl: service.baseUrl, ...service.keys.valid });

const receiver = transferCallbackReceiver({
  store: memoryStore(), // In production the one that your router uses, shared: redisStore(client).
  confirm: confirmWith(client), // Nothing of a callback is believed before it was read back.
  onSuccess: ({ data }) => payouts.markPaid(data.externalId, data.amount),
  onFailed: ({ data }) => payouts.refund(data.externalId, data.failureReason),
});

/** Stands for a cursor over your own table of payouts that are still open. */
async function* openPayouts(): AsyncGenerator<PendingTransfer> {
  for (const id of ['no-callback-1', 'failed-2', 'unheard-of-3']) {
    yield await Promise.resolve({ id, createdAt: Date.now() - 3_600_000 });
  }
}

/** One pass. Run it from a timer, as here, or make it a script of its own and run that from cron. */
async function reconcile(signal?: AbortSignal): Promise<void> {
  const { processed, duplicate, pending, unknown, failed, problems, stopped } = await reconcileTransfers({
    client,
    receiver,
    pending: openPayouts(),
    deadlineMs: 240_000, // So that it has ended when cron starts the next one.
    signal,
  });
  console.log(`Reconciled: ${JSON.stringify({ processed, duplicate, pending, unknown, failed })}`);
  for (const { id, error } of problems) console.log(`Look into ${id}: ${String(error)}`);
  if (stopped !== undefined) console.log(`The pass ended early: ${stopped}. The next one reads the rest.`);
}

const stopping = new AbortController();
process.once('SIGTERM', () => {
  stopping.abort();
});

// The merchant's callback address is not reachable: every callback is lost.
const callbackUrl = 'http://127.0.0.1:9/callbacks';
await client.createTransfer({ callbackUrl, externalId: 'no-callback-1', amount: 15_000 });
await client.createTransfer({ callbackUrl, externalId: 'failed-2', amount: 900 });

for (let pass = 0; pass < 2 && !stopping.signal.aborted; pass += 1) {
  await setTimeout(50, undefined, { signal: stopping.signal }); // In production some minutes.
  await reconcile(stopping.signal);
}
await receiver.close();
await service.close();
