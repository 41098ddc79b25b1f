import { defineService, hmacSignature } from 'transfer-callbacks/client';

const { MONNIFY_URL = 'https://api.monnify.com', MONNIFY_TOKEN, MONNIFY_CLIENT_SECRET } = process.env;

// Disbursements of Monnify. Read in public documentation on 2026-11-27, not seen live: developers.monnify.com
// (docs/webhooks/event-types), and teamapt.atlassian.net/wiki/spaces/MON (Get Transfer Status, the list of statuses).
export const monnify = defineService({
  read({ eventType, eventData: { reference, amount, currency, status } }) {
    if (!eventType.endsWith('_DISBURSEMENT')) return { ignored: eventType };
    return { state: status, id: reference, externalId: reference, amount, currency }; // the query takes `reference` only
  },
  states: {
    ...{ SUCCESS: 'SUCCESS', COMPLETED: 'SUCCESS', FAILED: 'FAILED', REVERSED: 'REVERSED' },
    ...{ PENDING: 'PENDING', AWAITING_PROCESSING: 'PENDING', IN_PROGRESS: 'PENDING', PENDING_AUTHORIZATION: 'PENDING' },
  },
  verify: hmacSignature({ header: 'monnify-signature', secrets: MONNIFY_CLIENT_SECRET, algorithm: 'sha512' }),
  baseUrl: MONNIFY_URL,
  async query(id, get) {
    const path = `/api/v2/disbursements/single/summary?reference=${encodeURIComponent(id)}`;
    const { responseBody } = await get(path, { authorization: `Bearer ${MONNIFY_TOKEN}` });
    return { eventType: 'QUERIED_DISBURSEMENT', eventData: responseBody };
  },
});
