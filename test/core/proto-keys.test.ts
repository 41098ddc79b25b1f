import { expect, test } from 'vitest';
import { deleteProtoKeys } from '../../src/core/validate.js';

/** How many own `__proto__` keys there are in a value that is no cycle. */
function countProtoKeys(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const children = Reflect.ownKeys(value).map((key) => Object.getOwnPropertyDescriptor(value, key)?.value as unknown);
  return children.reduce<number>(
    (sum, child) => sum + countProtoKeys(child),
    Object.hasOwn(value, '__proto__') ? 1 : 0,
  );
}

test.each([
  ['at the top', '{"__proto__":{"a":1},"b":2}', { b: 2 }],
  ['in an object', '{"data":{"__proto__":{"a":1},"b":2}}', { data: { b: 2 } }],
  ['in an array', '[0,[{"__proto__":null,"b":[]}]]', [0, [{ b: [] }]]],
  ['inside another one', '{"__proto__":{"__proto__":{"a":1}}}', {}],
  ['written with an escape', '{"\\u005f_proto__":{"a":1}}', {}],
])('a __proto__ key %s is deleted', (_where, text, expected) => {
  const value: unknown = JSON.parse(text);
  expect(countProtoKeys(value)).toBeGreaterThan(0);
  deleteProtoKeys(value);
  expect(value).toEqual(expected);
  expect(countProtoKeys(value)).toBe(0);
});

test('what has no such key stays as it is, frozen or not', () => {
  const value = { a: [1, { proto: '__proto__', constructor: { prototype: 1 } }], b: null, c: 'x', d: undefined };
  const text = JSON.stringify(value);
  deleteProtoKeys(value);
  deleteProtoKeys(Object.freeze(value));
  expect(JSON.stringify(value)).toBe(text);
  expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
});

test.each([undefined, null, '__proto__', new Uint8Array(3), () => 1])('%s has no keys to delete', (value) => {
  expect(() => {
    deleteProtoKeys(value);
  }).not.toThrow();
});

test('a prototype itself is left alone', () => {
  const prototype = { polluted: true };
  const value = Object.create(prototype) as object;
  deleteProtoKeys(value);
  expect(Object.getPrototypeOf(value)).toBe(prototype);
  expect({}).not.toHaveProperty('polluted');
});

test('a key that is not enumerable is deleted too', () => {
  const value = Object.defineProperty({}, '__proto__', { value: { a: 1 }, configurable: true });
  deleteProtoKeys(value);
  expect(Object.hasOwn(value, '__proto__')).toBe(false);
});

test('a key in a frozen object throws, so that it is passed on to nobody', () => {
  const value = Object.freeze(JSON.parse('{"__proto__":{"a":1}}') as object);
  expect(() => {
    deleteProtoKeys(value);
  }).toThrow(TypeError);
});

test('a value that contains itself is read once', () => {
  const value: Record<string, unknown> = JSON.parse('{"list":[{"__proto__":1}]}') as never;
  value.self = value;
  value.list = [value, value.list];
  deleteProtoKeys(value);
  expect(value.list).toEqual([value, [{}]]);
});

test('values in one another 100 000 deep need no stack', () => {
  const value = JSON.parse(`${'{"a":'.repeat(100_000)}{"__proto__":1}${'}'.repeat(100_000)}`) as object;
  deleteProtoKeys(value);
  let innermost = value as { a?: object };
  while (innermost.a !== undefined) innermost = innermost.a;
  expect(Object.hasOwn(innermost, '__proto__')).toBe(false);
});
