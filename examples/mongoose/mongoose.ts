/**
 * The handler's writes and the record in one transaction of MongoDB, with Mongoose. It needs a replica set at
 * `MONGODB_URL`:
 *
 *     npm install
 *     npx tsx mongoose.ts
 */
import express from 'express';
import mongoose from 'mongoose';
import { mongoStore, transferCallbackRouter } from 'transfer-callbacks';

const Payout = mongoose.model(
  'Payout',
  new mongoose.Schema({ externalId: String, paidAt: Date, failedAt: Date, reason: String }),
);

await mongoose.connect(process.env.MONGODB_URL ?? 'mongodb://localhost:27017/payouts?replicaSet=rs0');
const store = mongoStore(mongoose.connection.getClient());
await store.migrate();

const app = express();
app.post(
  '/callbacks/transfers',
  transferCallbackRouter({
    store,
    // With `session`, the update and the record are committed together. Without it the update would be kept on its own.
    async onSuccess({ data }, { tx }) {
      const paid = { paidAt: new Date(data.timestamp) };
      const { matchedCount } = await Payout.updateOne({ externalId: data.externalId }, paid, { session: tx });
      if (matchedCount !== 1) throw new Error(`No payout ${data.externalId}`);
    },
    async onFailed({ data }, { tx }) {
      const failed = { failedAt: new Date(data.timestamp), reason: data.failureReason };
      const { matchedCount } = await Payout.updateOne({ externalId: data.externalId }, failed, { session: tx });
      if (matchedCount !== 1) throw new Error(`No payout ${data.externalId}`);
    },
  }),
);
app.listen(process.env.PORT ?? 3000);
