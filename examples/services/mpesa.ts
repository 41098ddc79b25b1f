import { defineService, urlToken } from 'transfer-callbacks/client';

// B2C payments of M-Pesa (Kenya). Read in public documentation on 2026-11-27, not seen live: osenco/mpesa
// (RESPONSES.md), five more public programs, and api-evangelist/mpesa of 2026-07-17. Safaricom's own pages could not be
// read.
export const mpesa = defineService({
  read({ Result: { ResultCode, ConversationID, OriginatorConversationID, ResultDesc, ResultParameters } }) {
    const code = typeof ResultCode === 'object' ? '' : String(ResultCode); // a number or a string
    const isFailure = /^[1-9]\d*$|^[A-Z]{2,}_[A-Z0-9]+$/.test(code); // any other code gets 400
    const parameters = [ResultParameters?.ResultParameter ?? []].flat() as { Key: string; Value?: number | string }[];
    return {
      state: code === '0' ? 'success' : isFailure ? 'failure' : 'no ResultCode',
      id: ConversationID,
      externalId: OriginatorConversationID,
      amount: parameters.find(({ Key }) => Key === 'TransactionAmount')?.Value,
      currency: 'KES',
      reason: String(ResultDesc),
    };
  },
  states: { success: 'SUCCESS', failure: 'FAILED' },
  verify: urlToken(process.env.MPESA_CALLBACK_SECRET), // it signs nothing
  // No `query`: the result of a query is another callback.
});
