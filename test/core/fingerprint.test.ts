import { expect, test } from 'vitest';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { parseFingerprint, showFingerprint, toFingerprint } from '../../src/core/facts.js';
import fc from '../support/helpers/fast-check.js';
import { amount } from './callback-support.js';

test('the fingerprint is plain JSON of the four facts', () => {
  const { data } = transferSucceeded({ externalId: 'payout "1", \\2', amount: 0.1 });
  expect(toFingerprint(data)).toBe('["SUCCESS",0.1,"XAF","payout \\"1\\", \\\\2"]');
});

test('the fingerprint is unambiguous: no quote or comma in one fact makes it another', () => {
  const text = fc.string({ unit: fc.constantFrom('"', ',', '\\', '[', ']', ' ', '1', 'X', '\u2028', '\ud800') });
  const status = fc.constantFrom('SUCCESS' as const, 'FAILED' as const);
  const facts = fc.record({ status, amount, currency: text, externalId: text });
  fc.assert(
    fc.property(facts, facts, (one, other) => {
      const equal = (Object.keys(one) as (keyof typeof one)[]).every((name) => one[name] === other[name]);
      expect(toFingerprint(one) === toFingerprint(other)).toBe(equal);
      // What was written can be read back. JSON has no -0.
      expect(parseFingerprint(toFingerprint(one))).toEqual({ ...one, amount: one.amount + 0 });
    }),
    { numRuns: 1_000 },
  );
});

test('amount and currency that another service leaves out are null in the fingerprint, and not the text null', () => {
  const facts = { status: 'FAILED' as const, externalId: 'a' };
  expect(toFingerprint(facts)).toBe('["FAILED",null,null,"a"]');
  for (const read of [parseFingerprint, showFingerprint]) {
    expect(read(toFingerprint(facts))).toEqual(facts);
    expect(read(toFingerprint({ ...facts, amount: 'null', currency: 'null' }))).toMatchObject({ amount: 'null' });
  }
});

test.each(['paid', '5', 'null'])('no facts are read from %j', (text) => {
  expect(parseFingerprint(text)).toBeUndefined();
});
