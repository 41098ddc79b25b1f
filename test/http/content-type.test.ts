import { describe, expect, test } from 'vitest';
import { httpServers } from '../support/http-servers.js';
import { errorBody, post } from '../support/post.js';
import { witness } from '../support/witness.js';
import { manyScripts, start } from './support.js';

describe.each(httpServers)('on $name', (server) => {
  describe('the content type', () => {
    test.each([
      'application/json',
      'Application/JSON',
      'application/json;',
      'application/json; charset=utf-8',
      'application/json;charset=UTF-8',
      'application/json; charset="utf-8"',
      'application/json; charset=utf8',
      'application/json ; version=1 ; charset=Utf-8',
      'application/json; profile="x;charset=latin1"',
      'application/json; profile="a\\";charset=latin1;\\""; charset="utf-8"',
    ])('a body of type %s is read', async (type) => {
      const { options, handled } = witness();
      const { url } = await start(server, options);
      const callback = manyScripts();
      expect((await post(url, callback, { headers: { 'Content-Type': type } })).status).toBe(200);
      expect(handled).toEqual([callback]);
    });

    const wrongType = 'Content-Type must be application/json.';
    const wrongCharset = 'The charset must be UTF-8.';
    const compressed = 'The body must not be compressed.';
    test.each([
      [{ 'Content-Type': undefined }, wrongType],
      [{ 'Content-Type': '' }, wrongType],
      [{ 'Content-Type': 'text/plain' }, wrongType],
      [{ 'Content-Type': 'application/x-www-form-urlencoded' }, wrongType],
      [{ 'Content-Type': 'multipart/form-data; boundary=x' }, wrongType],
      [{ 'Content-Type': 'application/json5' }, wrongType],
      [{ 'Content-Type': 'application/jsonp' }, wrongType],
      [{ 'Content-Type': 'application/x-ndjson' }, wrongType],
      [{ 'Content-Type': 'application/vnd.api+json' }, wrongType],
      [{ 'Content-Type': 'application/json, text/plain' }, wrongType],
      [{ 'Content-Type': 'text/plain; application/json' }, wrongType],
      [{ 'Content-Type': 'json' }, wrongType],
      [{ 'Content-Type': '*/*' }, wrongType],
      [{ 'Content-Type': 'application/json; charset=iso-8859-1' }, wrongCharset],
      [{ 'Content-Type': 'application/json; charset=us-ascii' }, wrongCharset],
      [{ 'Content-Type': 'application/json; charset=utf-16' }, wrongCharset],
      [{ 'Content-Type': 'application/json; charset=UTF-16LE' }, wrongCharset],
      [{ 'Content-Type': 'application/json; charset=utf-7' }, wrongCharset],
      [{ 'Content-Type': 'application/json; charset=' }, wrongCharset],
      [{ 'Content-Type': 'application/json; charset=utf-8-sig' }, wrongCharset],
      [{ 'Content-Type': 'application/json; profile="x"; charset=latin1' }, wrongCharset],
      [{ 'Content-Type': 'application/json; profile="x;"; charset="latin1"' }, wrongCharset],
      [{ 'Content-Type': '"application/json;"' }, wrongType],
      [{ 'Content-Encoding': 'gzip' }, compressed],
      [{ 'Content-Encoding': 'x-gzip' }, compressed],
      [{ 'Content-Encoding': 'deflate' }, compressed],
      [{ 'Content-Encoding': 'br' }, compressed],
      [{ 'Content-Encoding': 'zstd' }, compressed],
      [{ 'Content-Encoding': 'identity, gzip' }, compressed],
    ])('the response to %j is 415', async (headers, message) => {
      const { options, handled } = witness();
      const { url } = await start(server, options);
      const answer = await post(url, manyScripts(), { headers });
      expect([answer.status, answer.body]).toEqual([415, errorBody(415, message)]);
      expect(handled).toEqual([]);
    });

    test.each(['identity', 'Identity', 'IDENTITY'])('a body with the encoding %s is read', async (encoding) => {
      for (const before of [[], [server.parsers.json()]]) {
        const { options } = witness();
        const { url } = await start(server, options, { before });
        expect((await post(url, manyScripts(), { headers: { 'Content-Encoding': encoding } })).status).toBe(200);
      }
    });
  });
});
