import { hostname } from 'node:os';
import { expect, test } from 'vitest';
import { createDeliveryNamer, describeHolder, toDeliveryName } from '../../src/core/delivery.js';

test('a name tells when and where the delivery came in', () => {
  const before = Date.now();
  const { by, since } = describeHolder(createDeliveryNamer()());
  expect(by).toBe(`${hostname().replace(/[^\w.-]/g, '_')}, process ${process.pid}`);
  expect(since?.getTime()).toBeGreaterThanOrEqual(before);
  expect(since?.getTime()).toBeLessThanOrEqual(Date.now());
});

test('the token of a second claim names the same delivery', () => {
  for (const host of ['payouts-7f9c', 'web-1.2']) {
    const name = `2026-10-05T02:58:12.113Z/${host}/41/k3x9q2h1-17`;
    expect(toDeliveryName(name)).toBe(name);
    expect(toDeliveryName(`${name}.2`)).toBe(name);
    expect(toDeliveryName(`${name}.12`)).toBe(name);
    const holder = { by: `${host}, process 41`, since: new Date('2026-10-05T02:58:12.113Z') };
    for (const token of [name, `${name}.2`]) expect(describeHolder(token)).toEqual(holder);
  }
});

test('no two names are the same, of one receiver or of two', () => {
  const [first, second] = [createDeliveryNamer(), createDeliveryNamer()];
  const names = Array.from({ length: 2_000 }, (_, index) => (index % 2 === 0 ? first() : second()));
  expect(new Set(names).size).toBe(names.length);
});

test('a name has no space, so that a store may separate its fields by spaces', () => {
  expect(createDeliveryNamer()()).toMatch(/^[\w:.-]+\/[\w.-]+\/\d+\/[\da-z]+-1$/);
  expect(describeHolder(createDeliveryNamer('Ada’s Mac/2.local')()).by).toMatch(/^Ada_s_Mac_2\.local, process/);
});

test.each([
  'a token of another store',
  'x/host/1/y',
  '/2026-10-05T02:58:12.113Z/host/41/y',
  '2026-10-05T02:58:12.113Z/host/41/y/z',
  '2026-10-05T02:58:12.113Z/host/41x/y',
  '2026-10-05T02:58:12.113Z/host/x41/y',
  '2026-10-05T02:58:12.113Z//41/y',
  '2026-10-05T02:58:12.113Z/host/41/',
])('reads nothing from %j', (text) => {
  expect(describeHolder(text)).toEqual({});
});
