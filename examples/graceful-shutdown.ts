import { setTimeout as pause } from 'node:timers/promises';
import express from 'express';
import { Redis } from 'ioredis';
import { closeOnSignal, redisStore, transferCallbackRouter } from 'transfer-callbacks';

const redis = new Redis(process.env.REDIS_URL ?? 'redis://127.0.0.1:6379', { socketTimeout: 5_000 });
redis.on('error', (error) => {
  console.error('Redis:', error);
});

const router = transferCallbackRouter({
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
app.post('/callbacks/transfers', router);

const port = Number(process.env.PORT ?? 3000);
const server = app.listen(port, (error) => {
  if (error) throw error;
  console.log(`Callbacks are received at http://localhost:${port}/callbacks/transfers`);
});

// Running handlers and other requests finish and get their responses. A signal a second later ends the process.
const { unfinished } = await closeOnSignal(server, router.receiver);
// Close Redis last: until here the receiver may still have been recording a handler's success.
await redis.quit();
// Handlers that ignored their signal still run. Their leases expire before the service's next attempt.
process.exit(unfinished > 0 ? 1 : 0);
