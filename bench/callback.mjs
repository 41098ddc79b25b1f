/** Where every server responds. The last segment is the secret of the package's `urlToken`. */
export const secret = 'a-secret-of-the-benchmark';
export const path = `/callbacks/transfers/${secret}`;

/** The callback of service §2.1 for a mobile money transfer, as it comes over the wire. */
export function callbackText(id) {
  return JSON.stringify({
    event: 'transfer.success',
    data: {
      id,
      externalId: `payout-${id}`,
      reference: 'REF-20260115-000123',
      status: 'SUCCESS',
      amount: 15_000,
      currency: 'XAF',
      paymentMethod: 'mobile_money',
      walletNumber: '237670000000',
      bankAccount: null,
      provider: 'MTN',
      failureReason: null,
      timestamp: '2026-01-15T10:30:00.000Z',
      externalReference: 'PRV-000123456',
      vouchercode: '',
    },
  });
}
