import { z } from 'zod';

/** The payload as one writes it down in a quarter of an hour. */
export const schema = z.object({
  event: z.enum(['transfer.success', 'transfer.failed']),
  data: z.object({
    id: z.string().min(1),
    externalId: z.string(),
    reference: z.string(),
    status: z.enum(['SUCCESS', 'FAILED']),
    amount: z.number(),
    currency: z.string(),
    paymentMethod: z.enum(['mobile_money', 'bank']),
    walletNumber: z.string().nullable(),
    bankAccount: z.record(z.string(), z.unknown()).nullable(),
    provider: z.string(),
    failureReason: z.string().nullable(),
    timestamp: z.string(),
    externalReference: z.string(),
    vouchercode: z.string(),
  }),
});
