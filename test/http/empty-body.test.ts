import { once } from 'node:events';
import { describe, expect, test } from 'vitest';
import { httpServers } from '../support/http-servers.js';
import { errorBody, post } from '../support/post.js';
import { head, overSocket, parseStatus } from '../support/sockets.js';
import { witness } from '../support/witness.js';
import { json, start } from './support.js';

describe.each(httpServers)('on $name', (server) => {
  describe('an empty body', () => {
    const empty = errorBody(400, 'The body is not JSON.');
    test.each([
      ['left alone', []],
      // The parser leaves an empty object, whether it has read nothing or `{}`.
      ['after express.json()', [server.parsers.json()]],
      ['after express.raw()', [server.parsers.raw({ type: '*/*' })]],
      ['after express.text()', [server.parsers.text({ type: '*/*' })]],
    ])('the response to an empty body %s is 400', async (_how, before) => {
      const { options, handled } = witness();
      const { url } = await start(server, options, { before });
      expect((await post(url, '')).status).toBe(400);
      expect(handled).toEqual([]);
      const undeclared = await overSocket(url, (socket) => socket.write(head(url, json)));
      expect(parseStatus(undeclared)).toBe(400);
    });

    test('the response to an empty body names the reason', async () => {
      const { url } = await start(server, witness().options);
      expect((await post(url, '')).body).toBe(empty);
    });

    test('the response to an empty object that a parser has left names what is missing', async () => {
      const { url } = await start(server, witness().options, { before: [server.parsers.json()] });
      expect((await post(url, '{}')).body).toBe(errorBody(400, 'This is not a documented callback: see event.'));
    });

    test('the response to an empty chunked body is 400', async () => {
      const { url } = await start(server, witness().options);
      const answer = await overSocket(url, (socket) => {
        socket.write(head(url, { ...json, 'Transfer-Encoding': 'chunked' }) + '0\r\n\r\n');
      });
      expect(parseStatus(answer)).toBe(400);
      expect(answer.endsWith(empty)).toBe(true);
    });

    test('an empty body that other middleware has drained is a fault of the app, and is not waited for', async () => {
      const { url } = await start(server, witness().options, {
        before: [
          async (request, _response, next) => {
            await once(request.resume(), 'end');
            setTimeout(next, 5);
          },
        ],
      });
      expect((await post(url, '')).status).toBe(500);
    });
  });
});
