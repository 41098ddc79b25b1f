import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { Queue, Worker } from 'bullmq';
import express from 'express';
import { Redis } from 'ioredis';
import { redisStore, transferCallbackRouter, type TransferCallback } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';

const url = process.env.REDIS_URL ?? 'redis://127.0.0.1:6379';
const redis = new Redis(url, { socketTimeout: 5_000 });
const queue = new Queue<TransferCallback>('transfer-outcomes', { connection: { url } });

async function handOff(callback: TransferCallback): Promise<void> {
  await queue.add(callback.event, callback, {
    // The job has the id of the transfer, so that a handler that runs again adds no second job. Encode it and add a
    // prefix: BullMQ refuses numbers and colons, and the service does not document the format of its ids.
    jobId: `transfer-${encodeURIComponent(callback.data.id)}`,
    attempts: 10,
    backoff: { type: 'exponential', delay: 1_000 },
    removeOnComplete: { age: 7 * 24 * 60 * 60 },
  });
}

const app = express();

app.post(
  '/callbacks/transfers',
  transferCallbackRouter({ store: redisStore(redis), onSuccess: handOff, onFailed: handOff }),
);

// The worker usually runs in another process. It has no deadline, and BullMQ, not the service, retries its jobs.
const worker = new Worker<TransferCallback>(
  'transfer-outcomes',
  async ({ data: { data } }) => {
    await workForMinutes(data.externalId, data.status);
  },
  { connection: { url } },
);

// Deliver one callback twice, with an id that BullMQ would refuse without the encoding.
const callback = transferSucceeded({ id: String(Date.now()) });
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

function workForMinutes(externalId: string, status: string): Promise<void> {
  console.log(`Worked on ${externalId}: ${status}`);
  return Promise.resolve();
}
