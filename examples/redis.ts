import express from 'express';
import { Redis } from 'ioredis';
import { redisStore, transferCallbackRouter } from 'transfer-callbacks';
import { payouts } from './payouts.js';

const redis = new Redis(process.env.REDIS_URL ?? 'redis://127.0.0.1:6379', {
  // A server that vanishes without closing its connections is noticed after 5 s. Without this it takes minutes: longer
  // than the service's four attempts.
  socketTimeout: 5_000,
  // While Redis is away a callback gets 503 immediately, not after `storeTimeoutMs`, and ioredis does not collect claims
  // of deliveries that have ended, to send them all when Redis is back.
  enableOfflineQueue: false,
  // Another server may become the primary behind the same address. ioredis then connects and sends the command again.
  reconnectOnError: (error) => (error.message.startsWith('READONLY') ? 2 : false),
});
redis.on('error', (error) => {
  console.error('Redis:', error);
});
// Without the offline queue, commands before this would be refused.
await new Promise((resolve) => redis.once('ready', resolve));

const app = express();

app.use(
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
