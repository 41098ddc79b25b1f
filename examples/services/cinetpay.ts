import { defineService, urlToken } from 'transfer-callbacks/client';

const { CINETPAY_URL = 'https://client.cinetpay.com', CINETPAY_TOKEN = '', CINETPAY_CALLBACK_SECRET } = process.env;

// Transfers of CinetPay. Read in public documentation on 2026-11-27, not seen live: docs.cinetpay.com/api/1.0-fr
// (transfert/notification, transfert/statuts). It sends a form, and a GET before it to see whether the URL responds.
export const cinetpay = defineService({
  read: (form) => ({
    state: form.treatment_status,
    id: form.transaction_id,
    externalId: form.client_transaction_id,
    amount: form.amount, // a text in the form, and a number in the response to a query: one fact
  }),
  states: { VAL: 'SUCCESS', REJ: 'FAILED', NEW: 'PENDING', REC: 'PENDING', NOS: 'PENDING' },
  verify: urlToken(CINETPAY_CALLBACK_SECRET), // it signs nothing: add `confirm: true`
  baseUrl: CINETPAY_URL,
  async query(id, get) {
    const path = `/v1/transfer/check/money?token=${CINETPAY_TOKEN}&transaction_id=${encodeURIComponent(id)}`;
    const { data } = await get(path);
    return data[0];
  },
});
