import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { describe, expect, test } from 'vitest';
import { headerToken, urlToken, type TransferCallbackOutcome, type Verifier } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { readText } from '../docs/pages.js';
import { post, type Sent } from '../support/helpers/post.js';
import { head, overSocket, parseStatus } from '../support/helpers/sockets.js';
import { expressServers, nodeServers, roads, type HttpServer } from '../support/servers/http-servers.js';
import { json, startGuarded, startRecording, unauthorized, verifiers } from './support.js';

const secret = 'first-secret-0123456789';
const older = 'older-secret-0123456789';

test('every verifier of the package is tried here', () => {
  const exported = readText('src/http/verifiers/index.ts').matchAll(/export \{([^}]*)\} from/g);
  const names = [...exported].flatMap(([, list = '']) => list.split(',').map((name) => name.trim()));
  expect(names.filter((name) => /^[a-z]\w+$/.test(name)).sort()).toEqual(Object.keys(verifiers).sort());
});

const requests: [string, unknown, Sent][] = [
  ['a callback', transferSucceeded(), {}],
  ['malformed JSON', '{"event":', {}],
  ['another event', { event: 'transfer.pending' }, {}],
  ['no body', '', {}],
  ['too long a body', 'x'.repeat(102_401), {}],
  ['another type', transferSucceeded(), { headers: { 'Content-Type': 'text/plain' } }],
  ['no type', transferSucceeded(), { headers: { 'Content-Type': undefined } }],
  ['another charset', transferSucceeded(), { headers: { 'Content-Type': 'application/json; charset=utf-16' } }],
  ['a compressed body', transferSucceeded(), { headers: { 'Content-Encoding': 'gzip' } }],
  ['bytes that are not UTF-8', Uint8Array.of(0x22, 0xff, 0x22), {}],
  ['GET', '', { method: 'GET' }],
  ['HEAD', '', { method: 'HEAD' }],
  ['PUT', transferSucceeded(), { method: 'PUT' }],
  ['OPTIONS', '', { method: 'OPTIONS' }],
];

async function expectOneResponse(server: HttpServer, verify: Verifier): Promise<void> {
  const { url, refuses, logged } = await startGuarded(server, verify);
  for (const [what, body, sent] of requests) {
    const response = await post(url, body, sent);
    expect([what, response.status, response.body]).toEqual([what, 401, sent.method === 'HEAD' ? '' : unauthorized]);
    expect(response.headers).not.toHaveProperty('allow');
  }
  await refuses(url);
  for (const { details } of logged) expect(details).toMatchObject({ outcome: 'unauthorized', source: 'http' });
}

test.each(expressServers)('on $name a sender that is refused gets the same response, whatever it sends', (server) =>
  expectOneResponse(server, urlToken(secret)),
);

describe.each(roads)('on $name', (server) => {
  test.each(Object.entries(verifiers))(
    'a sender that %s refuses gets the same response, whatever it sends',
    (_name, make) => expectOneResponse(server, make()),
  );

  test('the log of a refused sender contains no secret', async () => {
    const { url, refuses, logged } = await startGuarded(server, [headerToken('X-Token', secret), urlToken(older)]);
    await refuses(url, { headers: { 'X-Token': secret } });
    await refuses(`${url}/${older}`);
    const text = JSON.stringify(logged);
    expect(logged).toHaveLength(2);
    expect(text).not.toContain(secret);
    expect(text).not.toContain(older);
  });

  test('a verifier that returns anything but true, or resolves with it, refuses', async () => {
    for (const verdict of [undefined, 1, 'true', { ok: false }, Promise.resolve({ ok: true })]) {
      const { url, refuses } = await startGuarded(server, () => verdict);
      await refuses(url);
    }
  });

  test('all verifiers of a list must accept, and are called in order until one refuses', async () => {
    const asked: string[] = [];
    const says = (name: string, verdict: boolean) => () => {
      asked.push(name);
      return verdict;
    };
    const both = await startGuarded(server, [urlToken(secret), headerToken('X-Token', older), says('last', true)]);
    await both.admits(`${both.url}/${secret}`, { headers: { 'X-Token': older } });
    await both.refuses(`${both.url}/${secret}`);
    await both.refuses(both.url, { headers: { 'X-Token': older } });
    expect(asked).toEqual(['last']);

    const stopped = await startGuarded(server, [says('a', true), says('b', false), says('c', true)]);
    await stopped.refuses(stopped.url);
    expect(asked).toEqual(['last', 'a', 'b']);
  });
});

type AnyRequest = IncomingMessage | Request;

/** The package with a first verifier that keeps the requests, to see what has been read of them. */
async function startKeeping(server: HttpServer, verify: Verifier | readonly Verifier[]) {
  const outcomes: TransferCallbackOutcome[] = [];
  const requests: AnyRequest[] = [];
  const keep = Object.assign((request: AnyRequest) => requests.push(request) > 0, { readsCallback: false });
  const onOutcome = (outcome: TransferCallbackOutcome) => outcomes.push(outcome);
  const started = await startRecording(server, { verify: [keep, ...[verify].flat()], onOutcome });
  return { ...started, outcomes, requests };
}

function isReading(request: AnyRequest): boolean {
  return 'bodyUsed' in request ? request.bodyUsed : request.readableLength > 0;
}

const bodyless: [string, () => Verifier][] = [
  // The others read the callback or its bytes.
  ...Object.entries(verifiers).filter(([name]) => name !== 'transferToken' && !name.endsWith('Signature')),
  ['a function that declares that it reads no callback', () => Object.assign(() => false, { readsCallback: false })],
];

describe.each(roads)('on $name', (server) => {
  test.each(bodyless)('%s refuses before a byte of the body has come, and reports it', async (_name, make) => {
    const { url, outcomes, requests, handled } = await startKeeping(server, [
      () => expect.fail('asked too late'),
      make(),
    ]);
    const response = await overSocket(url, async (socket) => {
      socket.write(head(url, { ...json, 'Content-Length': 100 }));
      // The response comes although nothing of the body has been sent.
      await once(socket, 'data');
      socket.write('x'.repeat(100));
    });
    expect(parseStatus(response)).toBe(401);
    expect(response.endsWith(unauthorized)).toBe(true);
    const issues = [{ path: [], message: 'The sender was refused before the body was read.' }];
    expect(outcomes).toMatchObject([{ outcome: 'unauthorized', source: 'http', issues }]);
    // It is a verdict, and no failure of the verifier.
    expect(outcomes[0]).not.toHaveProperty('error');
    expect(requests.map(isReading)).toEqual([false]);
    expect(handled).toEqual([]);
  });

  test.each<[string, boolean, { verify?: Verifier }]>([
    ['no verifier', false, {}],
    ['a verifier that reads no callback', true, { verify: Object.assign(() => true, { readsCallback: false }) }],
    ['a verifier that reads the callback', true, { verify: () => true }],
  ])('with %s an invalid callback is reported with `verified: %s`', async (_name, verified, secured) => {
    const outcomes: unknown[] = [];
    const onOutcome = (outcome: unknown) => outcomes.push(outcome);
    const { url } = await startRecording(server, { ...secured, onOutcome });
    expect(await post(url, {})).toMatchObject({ status: 400 });
    expect(outcomes).toMatchObject([{ outcome: 'invalid', verified }]);
  });

  test('a refused sender may go on with its connection, once it has sent the body', async () => {
    const { url } = await startKeeping(server, headerToken('X-Token', secret));
    const body = JSON.stringify(transferSucceeded());
    const response = await overSocket(url, async (socket) => {
      const headers = { ...json, 'Content-Length': body.length };
      socket.write(head(url, { ...headers, Connection: 'keep-alive' }));
      await once(socket, 'data');
      socket.write(body + head(url, { ...headers, 'X-Token': secret }) + body);
    });
    expect(response.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 401', 'HTTP/1.1 200']);
  });

  test('verifiers that need no callback are called first, in order, and each once; then the others', async () => {
    const calls: unknown[] = [];
    const noting = (name: string) => (_request: IncomingMessage, callback: unknown) => {
      calls.push([name, callback]);
      return true;
    };
    const { url } = await startKeeping(server, [
      noting('late'),
      Object.assign(noting('early'), { readsCallback: false }),
      Object.assign(noting('late, as by default'), { readsCallback: true }),
      Object.assign(noting('second early'), { readsCallback: false }),
    ]);
    const callback = transferSucceeded();
    expect((await post(url, callback)).status).toBe(200);
    expect(calls).toEqual([
      ['early', undefined],
      ['second early', undefined],
      ['late', callback],
      ['late, as by default', callback],
    ]);
  });

  test.each([
    ['an object', () => ({ ok: true }), undefined],
    ['nothing, because it throws', () => expect.fail('no keys today'), { message: 'no keys today' }],
    ['a promise that rejects', () => Promise.reject(new Error('no keys today')), { code: 'INVALID_ARGUMENT' }],
  ])(
    'a verifier that reads no callback refuses when it returns %s, and the log has the reason',
    async (_how, verify, err) => {
      const early = Object.assign(verify as Verifier, { readsCallback: false });
      const { url, logged } = await startKeeping(server, early);
      expect((await post(url, transferSucceeded())).body).toBe(unauthorized);
      expect(logged).toHaveLength(1);
      expect(logged[0]?.details.err ?? undefined).toEqual(err === undefined ? undefined : expect.objectContaining(err));
    },
  );
});

describe.each(nodeServers)('on $name', (server) => {
  test('a body that never comes is not waited for', async () => {
    const { url } = await startKeeping(server, headerToken('X-Token', secret));
    // Resolves when the server has ended the connection: the sender does nothing for it.
    const response = await overSocket(url, (socket) =>
      socket.write(head(url, { ...json, 'Content-Length': 100, Connection: 'keep-alive' })),
    );
    expect(parseStatus(response)).toBe(401);
  });
});
