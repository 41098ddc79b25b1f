import { describe, expect, test } from 'vitest';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { nodeServers, roads } from '../support/servers/http-servers.js';
import { errorBody, post } from '../support/helpers/post.js';
import { manyScripts, startRecording } from './support.js';

const notUtf8 = [
  [0xe9], // Latin-1.
  [0xc0, 0x80], // An overlong NUL.
  [0xed, 0xa0, 0x80], // A surrogate.
  [0xf0, 0x9f, 0x98], // Three of four bytes.
];

/** Returns callbacks with these bytes in the middle, at the end and at the start. */
function withBytes(bytes: readonly number[]): Buffer[] {
  const [first = '', last = ''] = JSON.stringify(transferSucceeded({ reference: '|' })).split('|');
  const [head, tail, odd] = [Buffer.from(first), Buffer.from(last), Uint8Array.from(bytes)];
  return [Buffer.concat([head, odd, tail]), Buffer.concat([head, tail, odd]), Buffer.concat([odd, head, tail])];
}

describe.each(roads)('on $name', (server) => {
  test('a body is read whose type and encoding are those of JSON in UTF-8', async () => {
    const { url, handled } = await startRecording(server);
    const accepted = [
      { 'Content-Type': 'application/json' },
      { 'Content-Type': 'APPLICATION/JSON' },
      { 'Content-Type': 'application/json;charset=UTF-8' },
      { 'Content-Type': 'application/json; charset="utf-8"' },
      { 'Content-Type': 'application/json; charset=utf8' },
      { 'Content-Type': 'application/json ; version=1 ; charset=Utf-8' },
      { 'Content-Type': 'application/json; profile="x;charset=latin1"' },
      { 'Content-Type': 'application/json; profile="a\\";charset=latin1;\\""; charset="utf-8"' },
      { 'Content-Encoding': 'identity' },
      { 'Content-Encoding': 'Identity' },
    ];
    for (const headers of accepted) {
      const callback = manyScripts();
      expect([headers, (await post(url, callback, { headers })).status]).toEqual([headers, 200]);
      expect(handled.at(-1)).toEqual(callback);
    }
  });

  test('a body of another type or charset, or compressed, gets 415 with the reason', async () => {
    const { url, handled } = await startRecording(server);
    const types = [
      ...[undefined, '', 'text/plain', 'application/x-www-form-urlencoded', 'application/json5', 'json', '*/*'],
      ...['application/vnd.api+json', 'application/json, text/plain', 'text/plain; application/json'],
      '"application/json;"',
    ];
    const charsets = [
      ...['iso-8859-1', 'us-ascii', 'utf-16', 'UTF-16LE', 'utf-7', '', 'utf-8-sig'].map((name) => `charset=${name}`),
      ...['profile="x"; charset=latin1', 'profile="x;"; charset="latin1"'],
    ];
    const refused = [
      ...types.map((type) => [{ 'Content-Type': type }, 'Content-Type must be application/json.'] as const),
      ...charsets.map(
        (rest) => [{ 'Content-Type': `application/json; ${rest}` }, 'The charset must be UTF-8.'] as const,
      ),
      ...['gzip', 'x-gzip', 'br', 'identity, gzip'].map(
        (encoding) => [{ 'Content-Encoding': encoding }, 'The body must not be compressed.'] as const,
      ),
    ];
    for (const [headers, message] of refused) {
      const { status, body } = await post(url, manyScripts(), { headers });
      expect([headers, status, body]).toEqual([headers, 415, errorBody(415, message)]);
    }
    expect(handled).toEqual([]);
  });

  test('a body that is not UTF-8 gets 400, wherever its odd bytes are', async () => {
    const { url, handled } = await startRecording(server);
    const littleEndian = Buffer.from(`\ufeff${JSON.stringify(transferSucceeded())}`, 'utf16le');
    for (const body of [...notUtf8.flatMap(withBytes), littleEndian, Buffer.from(littleEndian).swap16()]) {
      const response = await post(url, body);
      expect([response.status, response.body]).toEqual([400, errorBody(400, 'The body is not UTF-8.')]);
    }
    expect(handled).toEqual([]);
  });

  test('a byte order mark before the JSON is dropped', async () => {
    const { url, handled } = await startRecording(server);
    const callback = transferSucceeded({ reference: '\ufeff' });
    expect((await post(url, `\ufeff${JSON.stringify(callback)}`)).status).toBe(200);
    expect(handled).toEqual([callback]);
  });

  test('an unknown field of lists or objects in one another, as deep as the limit allows, is accepted', async () => {
    const { url, handled } = await startRecording(server);
    const bank = { paymentMethod: 'bank', walletNumber: null, bankAccount: { nested: '|' } } as const;
    for (const nested of [
      '['.repeat(45_000) + '0' + ']'.repeat(45_000),
      '{"a":'.repeat(15_000) + '0' + '}'.repeat(15_000),
    ]) {
      for (const callback of [{ extra: '|', ...transferSucceeded() }, transferSucceeded(bank)]) {
        const body = JSON.stringify(callback).replace('"|"', () => nested);
        expect((await post(url, body)).status).toBe(200);
      }
    }
    expect(handled).toHaveLength(4);
  });
});

describe.each(nodeServers)('on $name', (server) => {
  test.each([
    ['by the package', []],
    ['before it', [server.parsers.raw({ type: '*/*' })]],
  ])('malformed JSON that is read %s gets 400, and the server goes on', async (_where, before) => {
    const { url, handled } = await startRecording(server, {}, { before });
    const utf16 = Buffer.from('{"a":1}', 'utf16le');
    for (const body of ['{"event":"transfer.success","data":', '{}{}', '['.repeat(100_000), utf16]) {
      expect(await post(url, body)).toMatchObject({ status: 400, body: errorBody(400, 'The body is not JSON.') });
    }
    expect(handled).toEqual([]);
    expect((await post(url, transferSucceeded())).status).toBe(200);
  });
});
