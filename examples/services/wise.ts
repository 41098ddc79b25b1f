import { defineService, publicKeySignature } from 'transfer-callbacks/client';

const { WISE_URL = 'https://api.wise.com', WISE_TOKEN, WISE_PUBLIC_KEY } = process.env;

// Read in public documentation on 2026-11-27, not seen live: docs.wise.com/guides (developer/webhooks,
// developer/webhooks/essential-webhooks, product/send-money/tracking/transfer-statuses). Subscribe to
// `transfers#state-change`.
export const wise = defineService({
  read({ event_type, data }) {
    if (!event_type.startsWith('transfers#')) return { ignored: event_type };
    const state = event_type === 'transfers#state-change' ? data.current_state : event_type;
    return { state, id: data.resource.id, externalId: data.resource.id }; // neither your id nor an amount is in it
  },
  states: {
    ...{ outgoing_payment_sent: 'SUCCESS', cancelled: 'FAILED' },
    // After a bounce, weeks later, `cancelled` comes first, a 422 that changes nothing, and then this.
    funds_refunded: 'REVERSED',
    ...{ incoming_payment_waiting: 'PENDING', incoming_payment_initiated: 'PENDING', bounced_back: 'PENDING' },
    ...{ processing: 'PENDING', funds_converted: 'PENDING' },
  },
  verify: publicKeySignature({ header: 'x-signature-sha256', publicKeys: WISE_PUBLIC_KEY }),
  baseUrl: WISE_URL,
  async query(id, get) {
    const { status, ...resource } = await get(`/v1/transfers/${id}`, { authorization: `Bearer ${WISE_TOKEN}` });
    return { event_type: 'transfers#state-change', data: { resource, current_state: status } };
  },
});
