import express from 'express';
import { Redis } from 'ioredis';
import { redisStore, transferCallbackRouter } from 'transfer-callbacks';
import { payouts } from './payouts.js';

// A Redis that vanishes without closing its connections, as in a failover, would otherwise be noticed after minutes:
// later than the service's last attempt. The other defaults fit: a command that was cut off is sent again, the store
// knows its own claim by its token, and the receiver does not wait longer than `storeTimeoutMs`.
const redis = new Redis(process.env.REDIS_URL ?? 'redis://127.0.0.1:6379', { socketTimeout: 5_000 });
redis.on('error', (error) => {
  console.error('Redis:', error);
});

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
