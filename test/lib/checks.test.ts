import { expect, test } from 'vitest';
import { invalidArgument, invalidSecret, invalidVariable, requireBoolean } from '../../src/lib/checks.js';

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

test('a boolean is true or false, and nothing else', () => {
  for (const right of [true, false]) {
    expect(() => {
      requireBoolean('console', right);
    }).not.toThrow();
  }
  for (const wrong of ['true', 1, undefined]) {
    expect(() => {
      requireBoolean('console', wrong);
    }).toThrow('Expected `console` to be true or false');
  }
});
