import { defineService, hmacSignature, type SenderRequest } from 'transfer-callbacks/client';

const { KORAPAY_URL = 'https://api.korapay.com', KORAPAY_SECRET_KEY } = process.env;

// Korapay signs what `JSON.stringify` makes of `data`, and nothing beside it.
const signature = hmacSignature({ header: 'x-korapay-signature', secrets: KORAPAY_SECRET_KEY });
const toSigned = (body: string | Uint8Array) =>
  Buffer.from(JSON.stringify((JSON.parse(Buffer.from(body).toString()) as { data: unknown }).data));

// Payouts of Korapay. Read in public documentation on 2026-11-27, not seen live: developers.korapay.com/docs/webhooks,
// and ten public programs. The query could not be read there: it is that of these programs.
export const korapay = defineService({
  // Only `data` is read: the `event` beside it may be anybody's. The callback of a charge has the same form. Let your
  // handler throw for a reference that is none of your payouts.
  read: ({ data: { reference, status, amount, currency } }) => ({
    state: status,
    id: reference, // there is one id, which you choose
    externalId: reference,
    amount,
    currency,
  }),
  states: { success: 'SUCCESS', failed: 'FAILED', processing: 'PENDING' },
  verify: Object.assign(
    function korapaySignature(request: SenderRequest, callback: unknown, body: Uint8Array | undefined) {
      return body !== undefined && signature(request, callback, toSigned(body));
    },
    { readsBody: true, sign: (body: string | Uint8Array) => signature.sign(toSigned(body)) },
  ),
  baseUrl: KORAPAY_URL,
  query: (id, get) => get(`/merchant/api/v1/transactions/${id}`, { authorization: `Bearer ${KORAPAY_SECRET_KEY}` }),
});
