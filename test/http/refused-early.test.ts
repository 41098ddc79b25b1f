import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { describe, expect, onTestFinished, test } from 'vitest';
import { headerToken, type TransferCallbackOutcome, type Verifier } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { nodeServers, roads, type HttpServer } from '../support/servers/http-servers.js';
import { post } from '../support/helpers/post.js';
import { head, overSocket, parseStatus } from '../support/helpers/sockets.js';
import { recordingOptions } from '../support/helpers/logger.js';
import { json, unauthorized, verifiers } from './support.js';

const secret = 'a-secret-long-enough';

type AnyRequest = IncomingMessage | Request;

/** The package with a first verifier that keeps the requests, to see what has been read of them. */
async function start(server: HttpServer, verify: Verifier | readonly Verifier[]) {
  const { options, handled, logged } = recordingOptions();
  const outcomes: TransferCallbackOutcome[] = [];
  const requests: AnyRequest[] = [];
  const keep = (request: AnyRequest): boolean => requests.push(request) > 0;
  const { url, close } = await server.start({
    ...options,
    verify: [Object.assign(keep, { readsCallback: false }), ...[verify].flat()],
    onOutcome: (outcome) => outcomes.push(outcome),
  });
  onTestFinished(close);
  return { url, handled, logged, outcomes, requests };
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
    const { url, outcomes, requests, handled } = await start(server, [() => expect.fail('asked too late'), make()]);
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
    const { url, close } = await server.start({
      ...recordingOptions().options,
      ...secured,
      onOutcome: (outcome) => outcomes.push(outcome),
    });
    onTestFinished(close);
    expect(await post(url, {})).toMatchObject({ status: 400 });
    expect(outcomes).toMatchObject([{ outcome: 'invalid', verified }]);
  });

  test('a refused sender may go on with its connection, once it has sent the body', async () => {
    const { url } = await start(server, headerToken('X-Token', secret));
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
    const { url } = await start(server, [
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
    [
      'nothing, because it throws',
      () => {
        throw new Error('no keys today');
      },
      { message: 'no keys today' },
    ],
    ['a promise that rejects', () => Promise.reject(new Error('no keys today')), { code: 'INVALID_ARGUMENT' }],
  ])(
    'a verifier that reads no callback refuses when it returns %s, and the log has the reason',
    async (_how, verify, err) => {
      const early = Object.assign(verify as Verifier, { readsCallback: false });
      const { url, logged } = await start(server, early);
      expect((await post(url, transferSucceeded())).body).toBe(unauthorized);
      expect(logged).toHaveLength(1);
      expect(logged[0]?.details.err ?? undefined).toEqual(err === undefined ? undefined : expect.objectContaining(err));
    },
  );
});

describe.each(nodeServers)('on $name', (server) => {
  test('a body that never comes is not waited for', async () => {
    const { url } = await start(server, headerToken('X-Token', secret));
    // Resolves when the server has ended the connection: the sender does nothing for it.
    const response = await overSocket(url, (socket) =>
      socket.write(head(url, { ...json, 'Content-Length': 100, Connection: 'keep-alive' })),
    );
    expect(parseStatus(response)).toBe(401);
  });
});
