import { randomBytes } from 'node:crypto';
import express from 'express';
import { hmacSignature, memoryStore, transferCallbackRouter } from 'transfer-callbacks';
import { z } from 'zod';
import { payouts } from './payouts.js';

// An invented service with other names and words, numbers for ids, cents for amounts, a signature, and one URL for
// events of all kinds: {"type":"payout.paid","payout":{"id":7,"reference":"payout-1","amount":1999,"currency":"XAF"}}
const payout = z.looseObject({
  id: z.number().int(),
  reference: z.string(),
  currency: z.string().optional(),
  reason: z.string().nullish(),
});
const schema = z
  .discriminatedUnion('type', [
    z.looseObject({ type: z.literal('payout.paid'), payout: payout.extend({ amount: z.number().int() }) }),
    z.looseObject({ type: z.literal('payout.bounced'), payout }),
    // By their names: an event that the service adds one day may be an outcome, and gets 400 until the schema knows it.
    z.looseObject({ type: z.enum(['payout.pending', 'charge.paid']) }),
  ])
  .transform((given) => {
    switch (given.type) {
      case 'payout.paid': {
        const data = { ...toFacts(given.payout), status: 'SUCCESS' as const, amount: given.payout.amount / 100 };
        return { event: 'transfer.success' as const, data };
      }
      case 'payout.bounced': {
        const data = { ...toFacts(given.payout), status: 'FAILED' as const, reason: given.payout.reason ?? null };
        return { event: 'transfer.failed' as const, data };
      }
      case 'payout.pending':
      case 'charge.paid':
        return { event: 'other' as const, type: given.type };
    }
  });

function toFacts({ id, reference, currency }: z.output<typeof payout>) {
  return { id: String(id), externalId: reference, currency };
}

const router = transferCallbackRouter({
  store: memoryStore(),
  schema,
  verify: hmacSignature({
    header: 'x-signature',
    // In production, leave `randomBytes` out: making a verifier without its secret throws.
    secrets: process.env.SIGNATURE_SECRET ?? randomBytes(32).toString('hex'),
    algorithm: 'sha512',
  }),
  async onSuccess({ data }) {
    await payouts.markPaid(data.externalId, data.amount);
  },
  async onFailed({ data }) {
    await payouts.refund(data.externalId, data.reason);
  },
  onOther({ type }) {
    console.log(`Nothing to do for ${type}`);
  },
});

const app = express();
app.post('/callbacks/payouts', router);

const port = Number(process.env.PORT ?? 3000);
app.listen(port, (error) => {
  if (error) throw error;
  console.log(`Callbacks are received at http://localhost:${port}/callbacks/payouts`);
});
