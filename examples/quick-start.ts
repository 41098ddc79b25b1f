import express from 'express';
import { memoryStore, transferCallbackRouter } from 'transfer-callbacks';

const app = express();
const router = transferCallbackRouter({
  store: memoryStore(), // forgets at a restart
  // in production: verify: urlToken(process.env.CALLBACK_SECRET),
  onSuccess({ data }) {
    console.log(`Paid ${data.externalId}: ${data.amount} ${data.currency}`);
  },
  onFailed({ data }) {
    console.log(`Refunded ${data.externalId}:`, data.failureReason);
  },
});
app.post('/callbacks/transfers', router); // in production: app.post('/callbacks/transfers/:token', router);

const port = Number(process.env.PORT ?? 3000);
app.listen(port, (error) => {
  if (error) throw error;
  console.log(`Callbacks are received at http://localhost:${port}/callbacks/transfers`);
});
