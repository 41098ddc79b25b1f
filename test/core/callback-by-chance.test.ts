import { expect, test, vi } from 'vitest';
import fc from '../support/helpers/fast-check.js';
import { amount, received, text } from './callback-support.js';

// Random cases take the processor a second or two.
vi.setConfig({ testTimeout: 60_000 });

const id = fc
  .string({
    unit: fc.oneof(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 1 }), fc.constantFrom('"', ',', '😀', '付')),
    minLength: 1,
    maxLength: 60,
  })
  .filter((value) => /^[^\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]+$/u.test(value) && Array.from(value).length <= 255);
const timestamp = fc
  .date({ min: new Date('0000-01-01T00:00:00Z'), max: new Date('9999-12-31T23:59:59.999Z'), noInvalidDate: true })
  .map((date) => date.toISOString());
const record = fc.dictionary(
  text.filter((key) => key !== '__proto__'),
  fc.jsonValue(),
);

/** Any callback that is valid: of each shape, with any values and any further fields. */
const validCallback = fc
  .record({
    extra: record,
    facts: fc.record({
      id,
      externalId: text,
      reference: text,
      amount,
      currency: text,
      provider: text,
      timestamp,
      externalReference: text,
      vouchercode: text,
    }),
    payout: fc.oneof(
      fc.record({ paymentMethod: fc.constant('mobile_money'), walletNumber: text, bankAccount: fc.constant(null) }),
      fc.record({ paymentMethod: fc.constant('bank'), walletNumber: fc.constant(null), bankAccount: record }),
    ),
    ending: fc.oneof(
      fc.record({ status: fc.constant('SUCCESS'), failureReason: fc.constant(null) }),
      fc.record({ status: fc.constant('FAILED'), failureReason: fc.option(text) }),
    ),
  })
  .map(({ extra, facts, payout, ending }) => ({
    event: ending.status === 'SUCCESS' ? 'transfer.success' : 'transfer.failed',
    data: { ...extra, ...facts, ...payout, ...ending },
  }));

test('every valid callback made by chance is accepted and reaches the handler unchanged', async () => {
  await fc.assert(
    fc.asyncProperty(validCallback, async (callback) => {
      const { handled, status } = await received(callback);
      expect(status).toBe(200);
      expect(handled).toEqual([callback]);
    }),
    { numRuns: 500 },
  );
});

test('any JSON is accepted as a callback or refused, and nothing throws', async () => {
  await fc.assert(
    fc.asyncProperty(fc.anything({ withNullPrototype: true }), async (anything) => {
      expect((await received(anything)).outcome.outcome).toBe('invalid');
    }),
    { numRuns: 500 },
  );
});
