import { expect, test } from 'vitest';
import { invalidArgument, invalidSecret, invalidVariable, requireBoolean } from '../../src/lib/checks.js';
import { listCauses, withSection } from '../../src/lib/errors.js';
import { messageOf, parseJson } from '../../src/lib/text.js';

test.each([
  [undefined, 'got undefined. Is its environment variable set?', undefined],
  ['', 'got an empty string. Is its environment variable set?', undefined],
  ['short', 'got a string of 5 characters. Correct its environment variable.', undefined],
  [7, 'got a number. Write `secret: env`.', 'secret: env'],
])('the error for the secret %o says "%s"', (value, said, write) => {
  const error = invalidVariable('secret', 'long', value, 'secret: env');
  expect(error.message).toContain(`Expected \`secret\` to be long, ${said}`);
  expect(error.write).toBe(write);
});

test('the error for a secret without an example names no code', () => {
  const error = invalidSecret('pool', 'a pool', 'postgres://user:secret@host');
  expect(error.message).toMatch(/got a string of 27 characters\.$/);
  expect(error).not.toHaveProperty('write');
});

test('the error for a promise in place of an option says that it was not awaited', () => {
  expect(invalidArgument('store', 'a store', Promise.resolve({})).message).toBe(
    'Expected `store` to be a store, got a promise that was not awaited.',
  );
});

test('a message leads to one section of the page, and its sentence ends with one full stop', () => {
  const section = 'See node_modules/transfer-callbacks/docs/errors.md#no_table.';
  for (const message of ['No table', 'No table.', 'No table..', `No table. ${section}`]) {
    expect(withSection('NO_TABLE', message)).toBe(`No table. ${section}`);
  }
  for (const code of ['INVALID_ARGUMENT', 'RETRY_LATER']) expect(withSection(code, 'Later.')).toBe('Later.');
});

test('a boolean is true or false, and nothing else', () => {
  for (const right of [true, false]) requireBoolean('console', right);
  for (const wrong of ['true', 1, undefined]) {
    expect(() => {
      requireBoolean('console', wrong);
    }).toThrow('Expected `console` to be true or false');
  }
});

test('the causes of an error are found behind each name that libraries give them', () => {
  const server = Object.assign(new Error('server'), { errno: 1213 });
  const driver = Object.assign(new Error('driver'), { parent: server });
  const app = new Error('app', { cause: driver });
  expect(listCauses(app)).toEqual([app, driver, server]);
  expect([listCauses('a text'), listCauses(undefined), listCauses(null)]).toEqual([[], [], []]);
});

test('the causes of an error that is its own cause are listed to an end', () => {
  const error = new Error('again');
  error.cause = error;
  expect(listCauses(error)).toHaveLength(10);
});

test('an error is known by its message, or else by its code or its name', () => {
  expect(messageOf(new Error('connect ECONNREFUSED'))).toBe('connect ECONNREFUSED');
  expect(messageOf(Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }))).toBe('refused');
  // What `net.connect` throws when no address of a name accepts.
  expect(messageOf(Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' }))).toBe('ECONNREFUSED');
  expect(messageOf(new RangeError())).toBe('RangeError');
  expect(['no', undefined, { message: 'no' }].map(messageOf)).toEqual(['no', 'undefined', '[object Object]']);
});

test('a thrown value that cannot be read has a message, too', () => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  for (const thrown of [proxy, Object.create(null)]) expect(messageOf(thrown)).toBe('The thrown value cannot be read.');
});

test('a text that is not JSON has no value', () => {
  expect(['{"a":[1]}', 'null', '{', ''].map(parseJson)).toEqual([{ a: [1] }, null, undefined, undefined]);
});
