import { expect, test } from 'vitest';
import { requireAttemptHeaders, requireHeaders, toHeaders } from '../../src/attempt/headers.js';
import { containing } from '../../../test/support/helpers/containing.js';

test('requireHeaders accepts names and values that HTTP can carry', () => {
  expect(() => {
    requireHeaders({ 'X-Token': 'a secret, é', authorization: '' });
  }).not.toThrow();
});

const noHeaders = 'Expected `headers` to be an object of names and values, got';
const noName = 'Expected `headers` to be named as HTTP allows, got';
const own =
  'Expected `headers` to be without Host, Connection, Content-Type, Content-Length, Transfer-Encoding, which the delivery sets, got';
const noValue = 'Expected `headers.X-Token` to be a string that a header can carry, got';

test.each<[unknown, string]>([
  ['X-Token: a', `${noHeaders} a string of 10 characters.`],
  [null, `${noHeaders} null.`],
  [new Headers({ 'X-Token': 'a' }), `${noHeaders} an object.`],
  [{ 'X Token': 'a' }, `${noName} "X Token".`],
  [{ '': 'a' }, `${noName} "".`],
  [{ 'content-type': 'text/plain' }, `${own} "content-type".`],
  [{ 'Content-Length': '1' }, `${own} "Content-Length".`],
  [{ host: 'example.com' }, `${own} "host".`],
  [{ Connection: 'keep-alive' }, `${own} "Connection".`],
  [{ 'transfer-encoding': 'chunked' }, `${own} "transfer-encoding".`],
  [{ 'X-Token': 'a\r\nX-Other: b' }, `${noValue} a string of 13 characters.`],
  [{ 'X-Token': '付' }, `${noValue} a string of 1 characters.`],
  [{ 'X-Token': undefined }, `${noValue} undefined.`],
])('requireHeaders refuses %j', (headers, message) => {
  expect(() => {
    requireHeaders(headers);
  }).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT', message: containing(message) }) as Error);
});

test('headers may be a function of the body, and what it returns is checked, too', () => {
  const body = Buffer.from('{}');
  const sign = (given: Buffer) => ({ 'X-Signature': given.toString('hex') });
  expect(() => {
    requireAttemptHeaders(sign, 'headers');
  }).not.toThrow();
  expect(toHeaders(sign, body)).toEqual({ 'X-Signature': '7b7d' });
  expect(toHeaders({ 'X-Token': 'a' }, body)).toEqual({ 'X-Token': 'a' });
  expect(() => {
    requireAttemptHeaders('X-Token: a', 'headers');
  }).toThrow(noHeaders);
  expect(() => toHeaders((() => 'X-Token: a') as never, body)).toThrow(
    noHeaders.replace('headers', 'what the function of the headers returns'),
  );
});
