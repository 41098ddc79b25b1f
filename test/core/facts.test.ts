import { expect, test } from 'vitest';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { haveSameFacts, isSameAmount, parseFingerprint, showFingerprint, toFingerprint } from '../../src/core/facts.js';
import fc from '../support/helpers/fast-check.js';

const amount = fc
  .oneof(fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true }))
  .filter((value) => !Number.isInteger(value) || Number.isSafeInteger(value));

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

test('amounts that are written in several ways are one fact, and others are two, also beyond 2^53', () => {
  const ways = [
    [100, '100', '100.00', '0100.0', '1e2'],
    ['9007199254740993', '9007199254740993.0'],
    ['9007199254740992', 9_007_199_254_740_992],
    [0.1, '0.1', '0.10'],
    ['0.1000000000000000055511151231257827'],
    [1e-8, '0.00000001', '1e-8', '1E-8'],
    [0, '0', '0.00', '000'],
    [-100, '-100', '-100.00'],
    ['100 XAF'],
    ['100,00'],
    [''],
    ['1e9999'],
    [undefined],
  ];
  const amounts = ways.flatMap((way, index) => way.map((amount) => ({ amount, index })));
  for (const one of amounts) {
    for (const other of amounts) {
      const [written, rewritten] = [one, other].map(({ amount }) => toFingerprint({ status: 'SUCCESS', amount }));
      expect([one, other, isSameAmount(one.amount, other.amount)]).toEqual([one, other, one.index === other.index]);
      expect(haveSameFacts(String(written), String(rewritten))).toBe(one.index === other.index);
    }
  }
});

test('a number is the amount that its text is, and no other one', () => {
  fc.assert(
    fc.property(amount, amount, (one, other) => {
      expect(isSameAmount(one, String(one))).toBe(true);
      expect(isSameAmount(String(one), other)).toBe(one === other);
    }),
    { numRuns: 1_000 },
  );
});
