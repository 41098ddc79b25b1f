import { describe, expect, test, vi } from 'vitest';
import { transferCallbackSchema } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { parseFingerprint, showFingerprint, toFingerprint, type TransferCallbackFacts } from '../../src/core/facts.js';
import fc from '../support/fast-check.js';
import { amount, record, text, validCallback } from './callback-support.js';

// Random cases take the processor a second or two.
vi.setConfig({ testTimeout: 60_000 });

describe('the fingerprint', () => {
  const facts = fc.record({
    status: fc.constantFrom('SUCCESS' as const, 'FAILED' as const),
    amount,
    currency: text,
    externalId: text,
  });
  const quoting = fc.string({ unit: fc.constantFrom('"', ',', '\\', '[', ']', ' ', '1', 'X', '\u2028', '\ud800') });
  const trickyFacts = fc.record({
    status: fc.constantFrom('SUCCESS' as const, 'FAILED' as const),
    amount,
    currency: quoting,
    externalId: quoting,
  });
  const of = (data: Record<string, unknown>): string =>
    toFingerprint({ id: 'x', ...data } as unknown as TransferCallbackFacts);

  test('the fingerprint is plain JSON of the four facts', () => {
    const { data } = transferSucceeded({ externalId: 'payout "1", \\2', amount: 0.1 });
    expect(of({ ...data })).toBe('["SUCCESS",0.1,"XAF","payout \\"1\\", \\\\2"]');
  });

  test('the fingerprint is the same for the same facts, whatever else differs', () => {
    fc.assert(
      fc.property(facts, record, record, (same, one, other) => {
        expect(of({ ...one, ...same })).toBe(of({ ...other, ...same }));
      }),
    );
  });

  test('the fingerprint is unambiguous: no quote or comma in one fact makes it another', () => {
    fc.assert(
      fc.property(trickyFacts, trickyFacts, (one, other) => {
        const equal = (Object.keys(one) as (keyof typeof one)[]).every((name) => one[name] === other[name]);
        expect(of(one) === of(other)).toBe(equal);
        // What was written can be read back. JSON has no -0.
        expect(parseFingerprint(of(one))).toEqual({ ...one, amount: one.amount + 0 });
      }),
      { numRuns: 1_000 },
    );
  });

  test('amount and currency that another service leaves out are null in the fingerprint, and not the text null', () => {
    const { status, externalId } = { status: 'FAILED' as const, externalId: 'a' };
    expect(toFingerprint({ status, externalId })).toBe('["FAILED",null,null,"a"]');
    for (const read of [parseFingerprint, showFingerprint]) {
      expect(read(toFingerprint({ status, externalId }))).toEqual({ status, externalId });
      expect(read(of({ status, amount: 'null', currency: 'null', externalId }))).toMatchObject({ amount: 'null' });
    }
  });

  test.each(['', 'paid', '5', 'null', '{}', '["SUCCESS"'])('no facts are read from %j', (text) => {
    expect(parseFingerprint(text)).toBeUndefined();
  });

  test('the fingerprint of an amount differs from that of its text', () => {
    expect(of({ status: 'SUCCESS', amount: 1, currency: 'XAF', externalId: 'a' })).not.toBe(
      of({ status: 'SUCCESS', amount: '1', currency: 'XAF', externalId: 'a' }),
    );
  });

  test('every valid callback is the same, with the same fingerprint, after it was JSON', () => {
    fc.assert(
      fc.property(validCallback, (callback) => {
        const parsed = transferCallbackSchema.parse(callback);
        const again = transferCallbackSchema.parse(JSON.parse(JSON.stringify(callback)));
        // JSON has no -0.
        expect(JSON.stringify(again)).toBe(JSON.stringify(parsed));
        expect(toFingerprint(again.data)).toBe(toFingerprint(parsed.data));
      }),
      { numRuns: 500 },
    );
  });
});
