import { defineService, hmacSignature } from 'transfer-callbacks/client';

const { RAZORPAYX_URL = 'https://api.razorpay.com', RAZORPAYX_KEY = '', RAZORPAYX_WEBHOOK_SECRET } = process.env;
const authorization = `Basic ${Buffer.from(RAZORPAYX_KEY).toString('base64')}`; // the key is `id:secret`

// Payouts of RazorpayX. Read in public documentation on 2026-11-27, not seen live: razorpay.com/docs/webhooks/payouts,
// razorpay.com/docs/webhooks/best-practices, razorpay.com/docs/x/payouts/downtimes.
export const razorpayx = defineService({
  read({ event, payload }) {
    if (!event.startsWith('payout.') || event.startsWith('payout.downtime.')) return { ignored: event };
    const { id, reference_id, amount, currency } = payload.payout.entity;
    if (reference_id === null) return { ignored: 'payout without reference' }; // made on the dashboard, not by your app
    return { state: event, id, externalId: reference_id, amount, currency };
  },
  states: {
    ...{ 'payout.processed': 'SUCCESS', 'payout.failed': 'FAILED', 'payout.rejected': 'FAILED' },
    ...{ 'payout.cancelled': 'FAILED', 'payout.reversed': 'REVERSED', 'payout.updated': 'PENDING' },
    ...{ 'payout.pending': 'PENDING', 'payout.queued': 'PENDING', 'payout.initiated': 'PENDING' },
    'payout.processing': 'PENDING', // in the response to a query
  },
  verify: hmacSignature({ header: 'x-razorpay-signature', secrets: RAZORPAYX_WEBHOOK_SECRET }),
  baseUrl: RAZORPAYX_URL,
  async query(id, get) {
    const entity = await get(`/v1/payouts/${id}`, { authorization });
    return { event: `payout.${entity.status}`, payload: { payout: { entity } } };
  },
});
