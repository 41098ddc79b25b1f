// The services of the package by their names, as `check`, `trigger` and `deliver` load them.
import { expect, onTestFinished, test, vi } from 'vitest';
import { toFresh } from '../../src/services/fresh.js';
import { loadByName } from '../../src/services/load-by-name.js';

test('a definition reads its variable once, and the environment is left as it was', async () => {
  vi.stubEnv('CALLBACK_SECRET', 'the-secret-of-the-service');
  vi.stubEnv('KORAPAY_SECRET_KEY', 'the-key-of-production');
  onTestFinished(() => void vi.unstubAllEnvs());
  const load = () => loadByName('korapay', undefined);
  const [{ signWith, byName }] = await Promise.all([load(), load(), loadByName('paystack', undefined)]);
  expect([signWith.secret, byName?.payloads.success]).toEqual(['the-secret-of-the-service', expect.any(Object)]);
  const { KORAPAY_SECRET_KEY, PAYSTACK_SECRET_KEY } = process.env;
  expect([KORAPAY_SECRET_KEY, PAYSTACK_SECRET_KEY]).toEqual(['the-key-of-production', undefined]);
  vi.stubEnv('CALLBACK_SECRET', 'another-secret-0123456789');
  await expect(load()).rejects.toThrow('CALLBACK_SECRET to stay the same for korapay');
  await expect(loadByName('korapya', undefined)).rejects.toThrow('Did you mean `korapay`?');
});

test('a fresh value has the form of the old one, and twelve random characters at least', () => {
  expect(toFresh('54a6bc09-cef9-49a8-9041-f1f0c654cd88')).toMatch(/^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/);
  expect(toFresh('TRF_v5tip3zx8nna9o78')).toMatch(/^TRF_[a-z]\d[a-z]{3}\d[a-z]{2}\d[a-z]{3}\d[a-z]\d{2}$/);
  expect(toFresh('ABC123')).toMatch(/^[A-Z]{3}\d{9}$/);
  expect(toFresh('77')).toMatch(/^[1-9]{12}$/);
  expect(Number.isSafeInteger(Number(toFresh(77)))).toBe(true);
  expect([toFresh('ABC123', 'a'), toFresh('ABC123')]).not.toContain(toFresh('ABC123', 'b'));
  expect(toFresh('ABC123', 'a')).toBe(toFresh('ABC123', 'a'));
});
