import { describe, expect, test } from 'vitest';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { httpServers } from '../support/http-servers.js';
import { errorBody, post } from '../support/post.js';
import { witness } from '../support/witness.js';
import { start } from './support.js';

describe.each(httpServers)('on $name', (server) => {
  describe('a body that is not UTF-8', () => {
    const encodings: [string, number[]][] = [
      ['a lone continuation byte', [0x80]],
      ['two of them', [0x80, 0xbf]],
      ['a byte that UTF-8 never uses', [0xff]],
      ['another one', [0xfe]],
      ['Latin-1', [0xe9]],
      ['an overlong slash', [0xc0, 0xaf]],
      ['an overlong NUL', [0xc0, 0x80]],
      ['an overlong form of three bytes', [0xe0, 0x80, 0xaf]],
      ['an overlong form of four bytes', [0xf0, 0x80, 0x80, 0xaf]],
      ['a surrogate', [0xed, 0xa0, 0x80]],
      ['a pair of surrogates', [0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80]],
      ['a character beyond the last', [0xf4, 0x90, 0x80, 0x80]],
      ['a form of five bytes', [0xf8, 0x88, 0x80, 0x80, 0x80]],
      ['two of three bytes', [0xe2, 0x82]],
      ['three of four bytes', [0xf0, 0x9f, 0x98]],
    ];
    const between = JSON.stringify(transferSucceeded({ reference: '|' })).split('|');
    const invalid = errorBody(400, 'The body is not UTF-8.');

    test.each(encodings)('the response to a body with %s is 400', async (_what, bytes) => {
      const { options, handled } = witness();
      const unread = await start(server, options);
      const raw = await start(server, options, { before: [server.parsers.raw({ type: 'application/json' })] });
      const [first = '', last = ''] = between;
      for (const body of [
        Buffer.concat([Buffer.from(first), Uint8Array.from(bytes), Buffer.from(last)]),
        Buffer.concat([Buffer.from(first + last), Uint8Array.from(bytes)]),
        Buffer.concat([Uint8Array.from(bytes), Buffer.from(first + last)]),
      ]) {
        for (const { url } of [unread, raw]) {
          const answer = await post(url, body);
          expect([answer.status, answer.body]).toEqual([400, invalid]);
        }
      }
      expect(handled).toEqual([]);
    });

    test('the response to a body in UTF-16 is 400', async () => {
      const { options, handled } = witness();
      const { url } = await start(server, options);
      const text = JSON.stringify(transferSucceeded());
      const littleEndian = Buffer.from(`\ufeff${text}`, 'utf16le');
      for (const body of [littleEndian, Buffer.from(littleEndian).swap16()]) {
        expect((await post(url, body)).body).toBe(invalid);
      }
      expect((await post(url, Buffer.from(text, 'utf16le'))).body).toBe(errorBody(400, 'The body is not JSON.'));
      expect(handled).toEqual([]);
    });
  });

  test.each([
    ['left alone', []],
    ['after express.json()', [server.parsers.json()]],
    ['after express.raw()', [server.parsers.raw({ type: '*/*' })]],
    ['after express.text()', [server.parsers.text({ type: '*/*' })]],
  ])('a byte order mark before the JSON is dropped, %s', async (_how, before) => {
    const { options, handled } = witness();
    const { url } = await start(server, options, { before });
    const callback = transferSucceeded({ reference: '\ufeff' });
    expect((await post(url, `\ufeff${JSON.stringify(callback)}`)).status).toBe(200);
    expect(handled).toEqual([callback]);
  });
});
