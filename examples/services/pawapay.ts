import { defineService, messageSignature } from 'transfer-callbacks/client';

const { PAWAPAY_URL = 'https://api.pawapay.io', PAWAPAY_TOKEN, PAWAPAY_PUBLIC_KEY } = process.env;
const { PAWAPAY_CALLBACK_URL = '' } = process.env; // as pawaPay knows it: it is signed

// Payouts of pawaPay. Read in public documentation on 2026-11-27, not seen live: docs.pawapay.io/v2
// (api-reference/payouts, docs/signatures, docs/what_to_know). Enable signed callbacks in its dashboard.
export const pawapay = defineService({
  // There is one id, which you choose.
  read: ({ payoutId, status, amount, currency }) => ({
    state: status,
    id: payoutId,
    externalId: payoutId,
    amount,
    currency,
  }),
  states: { COMPLETED: 'SUCCESS', FAILED: 'FAILED', ACCEPTED: 'PENDING', ENQUEUED: 'PENDING', PROCESSING: 'PENDING' },
  verify: messageSignature({ publicKeys: PAWAPAY_PUBLIC_KEY, url: PAWAPAY_CALLBACK_URL }),
  baseUrl: PAWAPAY_URL,
  async query(id, get) {
    const { data } = await get(`/v2/payouts/${id}`, { authorization: `Bearer ${PAWAPAY_TOKEN}` });
    return data; // an unknown payout is a 200 without it
  },
});
