import { setTimeout as pause } from 'node:timers/promises';
import express from 'express';
import { Redis } from 'ioredis';
import { redisStore, transferCallbackReceiver, transferCallbackRouter } from 'transfer-callbacks';

const redis = new Redis(process.env.REDIS_URL ?? 'redis://127.0.0.1:6379', { socketTimeout: 5_000 });
redis.on('error', (error) => {
  console.error('Redis:', error);
});

const receiver = transferCallbackReceiver({
  store: redisStore(redis),
  async onSuccess({ data }, { signal }) {
    console.log(`Booking ${data.externalId}`);
    await pause(1_000, undefined, { signal }); // Imitates work that can be cancelled.
    console.log(`Booked ${data.externalId}`);
  },
  onFailed({ data }) {
    console.log(`Failed ${data.externalId}`);
  },
});

const app = express();
app.post('/callbacks/transfers', transferCallbackRouter({ receiver }));

const port = Number(process.env.PORT ?? 3000);
const server = app.listen(port, (error) => {
  if (error) throw error;
  console.log(`Callbacks are received at http://localhost:${port}/callbacks/transfers`);
});

async function shutDown(): Promise<void> {
  // First stop new connections, then new deliveries on the open ones.
  const serverClosed = new Promise((resolve) => server.close(resolve));
  const { unfinished } = await receiver.close({ timeoutMs: 10_000 });
  // These handlers ignored their signal. Their leases expire before the service's next attempt.
  if (unfinished > 0) process.exit(1);
  // All responses have been sent. A request that stays open hangs, and would prevent the server from closing.
  setTimeout(() => {
    server.closeAllConnections();
  }, 1_000).unref();
  await serverClosed;
  // Close Redis last: until here the receiver may still have been recording a handler's success.
  await redis.quit();
}

process.once('SIGTERM', () => void shutDown());
