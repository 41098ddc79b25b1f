import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { nodeServers, type NodeServer, type Middleware } from '../support/servers/http-servers.js';
import { errorBody, post } from '../support/helpers/post.js';
import { head, overSocket, parseStatus } from '../support/helpers/sockets.js';
import { doing, json, leaving, manyScripts, sendInChunks, startRecording } from './support.js';

/** How an app may have treated the request before the package sees it. */
const treatments: [string, (parsers: NodeServer['parsers']) => Middleware[]][] = [
  ['left alone', () => []],
  ['after express.json() for another type', (express) => [express.json({ type: 'application/vnd.other+json' })]],
  [
    'after all parsers in a row',
    (express) => [express.urlencoded({ extended: false }), express.text(), express.raw(), express.json()],
  ],
  [
    'after a parser that leaves a view of its bytes',
    () => [leaving(({ buffer, byteOffset, length }) => ({ body: new DataView(buffer, byteOffset, length) }))],
  ],
  [
    'after a parser that leaves an object without a prototype',
    () => [
      leaving((bytes) => ({ body: Object.assign(Object.create(null) as object, JSON.parse(String(bytes))) as object })),
    ],
  ],
  ['paused while its bytes arrive', () => [doing((request) => pause(5, request.pause()))]],
  ['with its bytes turned into Base64 text', () => [doing((request) => request.setEncoding('base64'))]],
  ['with request.body null', () => [doing((request) => (request.body = null))]],
];

describe.each(nodeServers)('on $name', (server) => {
  test.each(treatments)('a body %s is read whole, in one piece and in chunks of a byte', async (_how, treat) => {
    const { url, handled } = await startRecording(server, {}, { before: treat(server.parsers) });
    const [whole, inChunks] = [manyScripts(), manyScripts()];
    expect((await post(url, whole)).body).toBe('{"outcome":"processed"}');
    expect(parseStatus(await sendInChunks(url, JSON.stringify(inChunks), 1))).toBe(200);
    expect(handled).toEqual([whole, inChunks]);
  });

  test.each([
    ['left alone', []],
    // The parser leaves an empty object, whether it has read nothing or `{}`.
    ['after express.json()', [server.parsers.json()]],
    ['after express.raw()', [server.parsers.raw({ type: '*/*' })]],
    ['after express.text()', [server.parsers.text({ type: '*/*' })]],
  ])('an empty body %s gets 400', async (_how, before) => {
    const { url, handled } = await startRecording(server, {}, { before });
    expect((await post(url, '')).status).toBe(400);
    expect(handled).toEqual([]);
    const undeclared = await overSocket(url, (socket) => socket.write(head(url, json)));
    expect(parseStatus(undeclared)).toBe(400);
  });

  test('the response to an empty object that a parser has left names what is missing', async () => {
    const { url } = await startRecording(server, {}, { before: [server.parsers.json()] });
    expect((await post(url, '{}')).body).toBe(errorBody(400, 'This is not the expected callback. See event.'));
  });

  test('an empty body that other middleware has drained is a fault of the app, and is not waited for', async () => {
    const drain = doing((request) => once(request.resume(), 'end').then(() => pause(5)));
    const { url } = await startRecording(server, {}, { before: [drain] });
    expect((await post(url, '')).status).toBe(500);
  });
});
