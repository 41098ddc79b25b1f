import { defineService, headerToken } from 'transfer-callbacks/client';

const {
  FLUTTERWAVE3_URL = 'https://api.flutterwave.com',
  FLUTTERWAVE_SECRET_KEY,
  FLUTTERWAVE_SECRET_HASH,
} = process.env;

// Read in public documentation on 2026-11-27, not seen live:
// developer.flutterwave.com/docs/integration-guides/webhooks, and the sample of a transfer in five public programs.
// Version 3 of the API.
export const flutterwave3 = defineService({
  read({ event, data }) {
    if (!event.startsWith('transfer.')) return { ignored: event };
    // `transfer.completed` announces failures, too: only the status tells how a transfer ended.
    const state = event === 'transfer.completed' ? data.status : event;
    return { state, id: data.id, externalId: data.reference, amount: data.amount, currency: data.currency };
  },
  states: { SUCCESSFUL: 'SUCCESS', FAILED: 'FAILED', NEW: 'PENDING', PENDING: 'PENDING' },
  verify: headerToken('verif-hash', FLUTTERWAVE_SECRET_HASH), // it signs nothing
  baseUrl: FLUTTERWAVE3_URL,
  // By Flutterwave's id only: by your reference it responds with a list.
  async query(id, get) {
    const { data } = await get(`/v3/transfers/${id}`, { authorization: `Bearer ${FLUTTERWAVE_SECRET_KEY}` });
    return { event: 'transfer.completed', data };
  },
});
