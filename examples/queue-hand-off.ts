import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { Queue, Worker } from 'bullmq';
import express from 'express';
import { Redis } from 'ioredis';
import { redisStore, transferCallbackRouter, type TransferCallback } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';

/** What a job needs of a callback, also of another service and of a reversal. */
interface Outcome {
  readonly event: string;
  readonly data: { readonly id: string; readonly externalId: string; readonly status: string };
}

/** Makes a handler that adds a job for each event of a transfer: as `onSuccess`, `onFailed` and `onReversed`. */
export function handOffTo(queue: Queue<Outcome>): (callback: Outcome) => Promise<void> {
  return async function handOff(callback) {
    const { event, data } = callback;
    const job = await queue.add(event, callback, {
      // BullMQ silently drops a job whose id it has. So a handler that runs again adds no second job, and the event
      // belongs in the id: a reversal would be dropped after a success. BullMQ refuses colons: encode the transfer's id.
      jobId: `${event}-${encodeURIComponent(data.id)}`,
      attempts: 10,
      backoff: { type: 'exponential', delay: 1_000 },
      removeOnComplete: { age: 7 * 24 * 60 * 60 },
    });
    // BullMQ also drops it for a job that has failed for good, so retry that one with the callback that came now.
    if (await job.isFailed()) {
      await job.updateData(callback);
      await job.retry('failed', { resetAttemptsMade: true });
    }
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const url = process.env.REDIS_URL ?? 'redis://127.0.0.1:6379';
  const redis = new Redis(url, { socketTimeout: 5_000 });
  const queue = new Queue<Outcome>('transfer-outcomes', { connection: { url } });
  const handOff = handOffTo(queue);

  const app = express();
  app.post(
    '/callbacks/transfers',
    transferCallbackRouter({ store: redisStore(redis), onSuccess: handOff, onFailed: handOff }),
  );

  // The worker usually runs in another process. It has no deadline, and BullMQ, not the service, retries its jobs.
  const worker = new Worker<Outcome>(
    'transfer-outcomes',
    async ({ data: { data } }) => {
      await workForMinutes(data.externalId, data.status);
    },
    { connection: { url } },
  );

  // Deliver one callback twice, with an id that BullMQ would refuse without a prefix, because it is a number.
  const callback: TransferCallback = transferSucceeded({ id: String(Date.now()) });
  const server = app.listen(0);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const completed = once(worker, 'completed');
  for (const delivery of ['first', 'second']) {
    const response = await fetch(`http://localhost:${port}/callbacks/transfers`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(callback),
    });
    console.log(`The ${delivery} delivery got ${response.status}: ${await response.text()}`);
    if (!response.ok) throw new Error('Without a 2xx there is nothing in the queue');
  }
  await completed;

  server.close();
  await worker.close();
  await queue.close();
  await redis.quit();
}

function workForMinutes(externalId: string, status: string): Promise<void> {
  console.log(`Worked on ${externalId}: ${status}`);
  return Promise.resolve();
}
