import { defineService, hmacSignature } from 'transfer-callbacks/client';

const { FLUTTERWAVE4_URL = 'https://api.flutterwave.cloud', FLUTTERWAVE_TOKEN, FLUTTERWAVE_SECRET_HASH } = process.env;

// Read in public documentation on 2026-11-27, not seen live: developer.flutterwave.com (docs/webhooks, reference of
// transfers and of the webhooks transfer.disburse and transfer.reversal), version 4 of the API.
export const flutterwave4 = defineService({
  read({ type, data }) {
    if (!type.startsWith('transfer.')) return { ignored: type };
    // The documented example of a reversal has the status FAILED, and so may a query. A new kind of event is its own
    // state.
    const isReversed = type === 'transfer.reversal' || data.reversal?.reconciliation_status === 'REVERSED';
    const state = isReversed ? 'REVERSED' : type === 'transfer.disburse' ? data.status : type;
    const amount = data.amount?.value ?? data.amount; // an object in the response to a query
    return { state, id: data.id, externalId: data.reference, amount, currency: data.destination_currency };
  },
  states: { SUCCESSFUL: 'SUCCESS', FAILED: 'FAILED', REVERSED: 'REVERSED', NEW: 'PENDING', PENDING: 'PENDING' },
  verify: hmacSignature({ header: 'flutterwave-signature', secrets: FLUTTERWAVE_SECRET_HASH, encoding: 'base64' }),
  baseUrl: FLUTTERWAVE4_URL,
  async query(id, get) {
    const { data } = await get(`/transfers/${id}`, { authorization: `Bearer ${FLUTTERWAVE_TOKEN}` });
    return { type: 'transfer.disburse', data };
  },
});
