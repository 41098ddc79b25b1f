import { hostname } from 'node:os';
import { readDelivery } from 'transfer-callbacks';
import { expect, test } from 'vitest';
import { deliveryNames } from '../../src/core/delivery.js';

test('a name tells when and where the delivery came in', () => {
  const before = Date.now();
  const origin = readDelivery(deliveryNames()());
  expect(origin).toMatchObject({ pid: process.pid, host: hostname().replace(/[^\w.-]/g, '_') });
  expect(origin?.at.getTime()).toBeGreaterThanOrEqual(before);
  expect(origin?.at.getTime()).toBeLessThanOrEqual(Date.now());
});

test('no two names are the same, of one receiver or of two', () => {
  const [first, second] = [deliveryNames(), deliveryNames()];
  const names = Array.from({ length: 2_000 }, (_, index) => (index % 2 === 0 ? first() : second()));
  expect(new Set(names).size).toBe(names.length);
});

test('a name has no space, so that a store may separate its fields by spaces', () => {
  expect(deliveryNames()()).toMatch(/^[\w:.-]+\/[\w.-]+\/\d+\/[\da-z]+-1$/);
});

test.each([
  '',
  'a token of another store',
  '2026-10-05T02:58:12.113Z/host',
  '2026-10-05T02:58:12.113Z/host/pid/x',
  'x/host/1/y',
  '2026-10-05T02:58:12.113Z/host/41x/y',
  '2026-10-05T02:58:12.113Z/host/x41/y',
  '2026-10-05T02:58:12.113Z//41/y',
  '2026-10-05T02:58:12.113Z/host/41/',
])('reads nothing from %j', (text) => {
  expect(readDelivery(text)).toBeUndefined();
});
