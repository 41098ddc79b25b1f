import { defineService, urlToken } from 'transfer-callbacks/client';

const { MTN_URL = 'https://proxy.momoapi.mtn.com', MTN_TOKEN, MTN_SUBSCRIPTION_KEY = '' } = process.env;
const { MTN_ENVIRONMENT = 'mtncameroon', MTN_CALLBACK_SECRET } = process.env;

// Disbursements of MTN MoMo. Read in public documentation on 2026-11-27, not seen live: momodeveloper.mtn.com
// (api-documentation/callback, the disbursement API). The callback comes by POST or by PUT.
export const mtn = defineService({
  // The id, X-Reference-Id, is not in the callback: choose it equal to `externalId`, or no query finds the transfer.
  read: ({ externalId, status, amount, currency }) => ({ state: status, id: externalId, externalId, amount, currency }),
  states: { SUCCESSFUL: 'SUCCESS', FAILED: 'FAILED', PENDING: 'PENDING' },
  verify: urlToken(MTN_CALLBACK_SECRET), // it signs nothing: add `confirm: true`
  baseUrl: MTN_URL,
  query: (id, get) =>
    get(`/disbursement/v1_0/transfer/${id}`, {
      authorization: `Bearer ${MTN_TOKEN}`,
      'ocp-apim-subscription-key': MTN_SUBSCRIPTION_KEY,
      'x-target-environment': MTN_ENVIRONMENT,
    }),
});
