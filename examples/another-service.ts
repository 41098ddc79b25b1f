import { randomBytes } from 'node:crypto';
import express, { type NextFunction, type Request, type Response } from 'express';
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
  ])
  .transform((given) => {
    const { id, reference, currency, reason } = given.payout;
    const facts = { id: String(id), externalId: reference, currency };
    if (given.type === 'payout.bounced') {
      return {
        event: 'transfer.failed' as const,
        data: { ...facts, status: 'FAILED' as const, reason: reason ?? null },
      };
    }
    const amount = given.payout.amount / 100;
    return { event: 'transfer.success' as const, data: { ...facts, status: 'SUCCESS' as const, amount } };
  });

const verify = hmacSignature({
  header: 'x-signature',
  // In production, leave `randomBytes` out: making a verifier without its secret throws.
  secrets: process.env.SIGNATURE_SECRET ?? randomBytes(32).toString('hex'),
  algorithm: 'sha512',
});

// By their names: an event that the service adds one day may be an outcome, and gets 400 until the schema knows it.
const ignored = new Set<unknown>(['payout.pending', 'charge.paid']);

/** Acknowledges signed events without an outcome. All others, and all strangers, go on to the router. */
function acknowledgeOthers(request: Request, response: Response, next: NextFunction): void {
  const body: unknown = request.body;
  if (Buffer.isBuffer(body) && verify(request, undefined, body) && ignored.has(readType(body)))
    response.sendStatus(200);
  else next();
}

function readType(body: Buffer): unknown {
  try {
    return (JSON.parse(body.toString()) as { type?: unknown }).type;
  } catch {
    return undefined; // the router responds
  }
}

const router = transferCallbackRouter({
  store: memoryStore(),
  schema,
  verify,
  async onSuccess({ data }) {
    await payouts.markPaid(data.externalId, data.amount);
  },
  async onFailed({ data }) {
    await payouts.refund(data.externalId, data.reason);
  },
});

const app = express();
// `express.raw` keeps the bytes that are signed. Without `acknowledgeOthers` the router needs no parser in front.
app.post('/callbacks/payouts', express.raw({ type: 'application/json' }), acknowledgeOthers, router);

const port = Number(process.env.PORT ?? 3000);
app.listen(port, (error) => {
  if (error) throw error;
  console.log(`Callbacks are received at http://localhost:${port}/callbacks/payouts`);
});
