import express from 'express';
import { createClient } from 'redis';
import { redisStore, transferCallbackRouter, type TransferCallbackOutcome } from 'transfer-callbacks';
import { payouts } from './payouts.js';

const redis = createClient({ url: process.env.REDIS_URL ?? 'redis://127.0.0.1:6379' });
// Without a listener, a connection that Redis closes ends the process.
redis.on('error', (error) => {
  console.error('Redis:', error);
});
await redis.connect();

let unavailableInARow = 0;

/**
 * Reconnects after two `store_unavailable` in a row, as the service makes only four attempts. node-redis detects
 * neither a server that vanished nor one that is no longer the primary, and has no option for it.
 */
function reconnectIfStuck({ outcome }: TransferCallbackOutcome): void {
  if (outcome === 'processed' || outcome === 'duplicate') unavailableInARow = 0;
  if (outcome === 'store_unavailable') unavailableInARow += 1;
  // A client that is not ready is connecting already.
  if (unavailableInARow < 2 || !redis.isReady) return;
  unavailableInARow = 0;
  redis.destroy();
  redis.connect().catch((error: unknown) => {
    console.error('Redis:', error);
  });
}

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
    onOutcome: reconnectIfStuck,
  }),
);

const port = Number(process.env.PORT ?? 3000);
app.listen(port, (error) => {
  if (error) throw error;
  console.log(`Callbacks are received at http://localhost:${port}/callbacks/transfers`);
});
