import { defineService, hmacSignature } from 'transfer-callbacks/client';

const { PAYSTACK_URL = 'https://api.paystack.co', PAYSTACK_SECRET_KEY } = process.env;

// Read in public documentation on 2026-11-27, not seen live: PaystackOSS/doc-code-snippets at 94af513
// (payments/webhooks), and paystack.com/docs: payments/webhooks, transfers/how-transfers-work.
export const paystack = defineService({
  read({ event, data }) {
    // Some other events have no id. Each event of a transfer has a name that `states` must have.
    if (!event.startsWith('transfer.')) return { ignored: event };
    return { state: event, id: data.id, externalId: data.reference, amount: data.amount, currency: data.currency };
  },
  states: {
    ...{ 'transfer.success': 'SUCCESS', 'transfer.failed': 'FAILED', 'transfer.reversed': 'REVERSED' },
    // Only a query responds with these.
    ...{ 'transfer.abandoned': 'FAILED', 'transfer.blocked': 'FAILED', 'transfer.rejected': 'FAILED' },
    ...{ 'transfer.pending': 'PENDING', 'transfer.otp': 'PENDING', 'transfer.received': 'PENDING' },
  },
  verify: hmacSignature({ header: 'x-paystack-signature', secrets: PAYSTACK_SECRET_KEY, algorithm: 'sha512' }),
  baseUrl: PAYSTACK_URL,
  async query(id, get) {
    const path = /^\d+$/.test(id) ? `/transfer/${id}` : `/transfer/verify/${id}`; // by Paystack's id, or by your reference
    const { data } = await get(path, { authorization: `Bearer ${PAYSTACK_SECRET_KEY}` });
    return { event: `transfer.${data.status}`, data };
  },
});
