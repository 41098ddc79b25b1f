import { expect, test } from 'vitest';
import { messageOf, parseJson } from '../../src/lib/text.js';

test('an error is known by its message, or else by its code or its name', () => {
  expect(messageOf(new Error('connect ECONNREFUSED'))).toBe('connect ECONNREFUSED');
  expect(messageOf(Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }))).toBe('refused');
  // What `net.connect` throws when no address of a name accepts.
  expect(messageOf(Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' }))).toBe('ECONNREFUSED');
  expect(messageOf(new RangeError())).toBe('RangeError');
  expect([messageOf('no'), messageOf(undefined), messageOf({ message: 'no' })]).toEqual([
    'no',
    'undefined',
    '[object Object]',
  ]);
});

test('a thrown value that cannot be read has a message, too', () => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  expect([messageOf(proxy), messageOf(Object.create(null))]).toEqual([
    'The thrown value cannot be read.',
    'The thrown value cannot be read.',
  ]);
});

test('a text that is not JSON has no value', () => {
  expect([parseJson('{"a":[1]}'), parseJson('null'), parseJson('{'), parseJson('')]).toEqual([
    { a: [1] },
    null,
    undefined,
    undefined,
  ]);
});
