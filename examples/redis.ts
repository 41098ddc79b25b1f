import express from 'express';
import { Redis } from 'ioredis';
import { redisStore, transferCallbackRouter } from 'transfer-callbacks';
import { payouts } from './payouts.js';

const redis = new Redis(process.env.REDIS_URL ?? 'redis://127.0.0.1:6379', {
  // Detects after 5 s that a server has vanished without closing its connections. Without this it takes minutes, which
  // is longer than the service's four attempts.
  socketTimeout: 5_000,
  // While Redis is unreachable, a callback gets 503 immediately, not after `storeTimeoutMs`. With the queue, ioredis
  // would later send the claims of deliveries that have ended.
  enableOfflineQueue: false,
  // After a failover the old primary is read-only. ioredis then reconnects and sends the command again.
  reconnectOnError: (error) => (error.message.startsWith('READONLY') ? 2 : false),
});
redis.on('error', (error) => {
  console.error('Redis:', error);
});
// Wait for the connection: without the offline queue, earlier commands would fail.
await new Promise((resolve) => redis.once('ready', resolve));

const app = express();

app.post(
  '/callbacks/transfers',
  transferCallbackRouter({
    store: redisStore(redis),
    async onSuccess({ data }) {
      await payouts.markPaid(data.externalId, data.amount);
    },
    async onFailed({ data }) {
      await payouts.refund(data.externalId, data.failureReason);
    },
  }),
);

const port = Number(process.env.PORT ?? 3000);
app.listen(port, (error) => {
  if (error) throw error;
  console.log(`Callbacks are received at http://localhost:${port}/callbacks/transfers`);
});
