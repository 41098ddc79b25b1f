import { hmacSignature } from 'transfer-callbacks';
import { defineService } from 'transfer-callbacks/client';

const { KORAPAY_URL = 'https://api.korapay.com', KORAPAY_SECRET_KEY } = process.env;

// Payouts of Korapay. Read in public documentation on 2026-11-27, not seen live: developers.korapay.com/docs/webhooks,
// and ten public programs. The query could not be read there: it is that of these programs.
export const korapay = defineService({
  // Only `data` is signed, so only that is read: the `event` beside it may be anybody's. The callback of a charge has
  // the same form. Let your handler throw for a reference that is none of your payouts.
  read: ({ reference, status, amount, currency }) => ({
    state: status,
    id: reference, // there is one id, which you choose
    externalId: reference,
    amount,
    currency,
  }),
  states: { success: 'SUCCESS', failed: 'FAILED', processing: 'PENDING' },
  verify: hmacSignature({ header: 'x-korapay-signature', secrets: KORAPAY_SECRET_KEY, part: 'data' }),
  baseUrl: KORAPAY_URL,
  async query(id, get) {
    const path = `/merchant/api/v1/transactions/${id}`;
    const { data } = await get(path, { authorization: `Bearer ${KORAPAY_SECRET_KEY}` });
    return data;
  },
});
