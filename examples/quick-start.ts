import express from 'express';
import { memoryStore, transferCallbackRouter } from 'transfer-callbacks';
import { payouts } from './payouts.js';

const app = express();

app.use(
  '/callbacks/transfers',
  transferCallbackRouter({
    store: memoryStore(),
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
