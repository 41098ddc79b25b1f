// The bytes that a verifier gets as its third argument.
import { createHmac } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { describe, expect, test } from 'vitest';
import { z } from 'zod/v4';
import {
  hmacSignature,
  memoryStore,
  transferToken,
  type TransferCallbackOptions,
  type Verifier,
} from 'transfer-callbacks';
import { transferService } from 'transfer-callbacks/client';
import { expressServers, roads, type Middleware, type NodeServer } from '../support/servers/http-servers.js';
import { post } from '../support/helpers/post.js';
import { leaving, manyScripts, sendInChunks, start, startRecording, unauthorized, verifiers } from './support.js';

/** A verifier that keeps what it gets, and accepts. */
function keeper() {
  const given: { callback: unknown; body: string | undefined }[] = [];
  const verify: Verifier = (_request, callback, body) => {
    given.push({ callback, body: body === undefined ? undefined : Buffer.from(body).toString('latin1') });
    return true;
  };
  return { given, verify };
}

const callback = manyScripts();
// As `JSON.stringify` would never write it.
const bytes = Buffer.from(`\ufeff ${JSON.stringify(callback, undefined, 2).replaceAll('/', '\\/')}\r\n`);
const received = bytes.toString('latin1');

describe.each(roads)('on $name', (server) => {
  test('a verifier gets the bytes as they were received, also of a body that is no callback', async () => {
    const { given, verify } = keeper();
    const { url } = await startRecording(server, { verify });
    expect((await post(url, bytes)).status).toBe(200);
    expect(await sendInChunks(url, bytes, 1)).toContain('duplicate');
    expect(given).toEqual([
      { callback, body: received },
      { callback, body: received },
    ]);
    for (const odd of [Buffer.of(0xff, 0x00), Buffer.from('{'), Buffer.from('')]) {
      expect((await post(url, odd)).status).toBe(400);
      expect(given.at(-1)).toEqual({ callback: undefined, body: odd.toString('latin1') });
    }
  });

  test('a verifier gets no bytes of a body that was not read', async () => {
    const { given, verify } = keeper();
    const { url } = await startRecording(server, { verify, bodyLimitBytes: 1_000 });
    expect((await post(url, bytes, { method: 'PUT' })).status).toBe(405);
    expect((await post(url, ' '.repeat(1_001))).status).toBe(413);
    expect((await post(url, bytes, { headers: { 'Content-Type': 'text/plain' } })).status).toBe(415);
    expect(given).toEqual([1, 2, 3].map(() => ({ callback: undefined, body: undefined })));
  });
});

/** Leaves the bytes in `rawBody`, as the documentation of Express's parsers shows it. */
function keepBytes(request: IncomingMessage & { rawBody?: unknown }, _response: unknown, given: Buffer): void {
  request.rawBody = given;
}

const secret = 'a-secret-long-enough';
const sign = (body: Buffer): string => createHmac('sha256', secret).update(body).digest('hex');

/** A schema that takes what a form has: amounts are texts there. */
const coercing = z.looseObject({
  event: z.enum(['transfer.success', 'transfer.failed']),
  data: z.looseObject({
    id: z.string(),
    externalId: z.string(),
    status: z.enum(['SUCCESS', 'FAILED']),
    amount: z.coerce.number(),
    currency: z.string(),
  }),
});

/** A failure in which one text, in UTF-7 or in a form, is the success of another amount. */
const signedFailure = Buffer.from(
  JSON.stringify({
    event: 'transfer.failed',
    data: {
      ...{ id: 'tx-1', externalId: 'X', status: 'FAILED', amount: 5, currency: 'XAF' },
      provider:
        '&event=transfer.success&data[id]=tx-1&data[externalId]=X&data[status]=SUCCESS&data[amount]=999999&data[currency]=XAF&z=',
      reference: 'r","status":"SUCCESS","amount":999999},"event":"transfer.success","x":{"y":"'.replace(
        /["{}]/g,
        (character) => ({ '"': '+ACI-', '{': '+AHs-', '}': '+AH0-' })[character] ?? '',
      ),
    },
  }),
);

describe.each(expressServers)('on $name', (server) => {
  const kept: [string, Middleware][] = [
    ['parses the body and keeps its bytes in rawBody', server.parsers.json({ verify: keepBytes }) as Middleware],
    ['leaves the bytes in request.body', server.parsers.raw({ type: '*/*' }) as Middleware],
    ['leaves the bytes in rawBody, and nothing in request.body', leaving((rawBody) => ({ rawBody }))],
    [
      'leaves a part of a longer buffer in rawBody',
      leaving((given) => {
        const longer = Buffer.concat([Buffer.from('before'), given, Buffer.from('after')]);
        const rawBody = new Uint8Array(longer.buffer, longer.byteOffset + 6, given.length);
        return { rawBody, body: JSON.parse(given.subarray(3).toString()) as unknown };
      }),
    ],
  ];
  test.each(kept)('a verifier gets the bytes behind middleware that %s', async (_what, before) => {
    const { given, verify } = keeper();
    const { url, handled } = await startRecording(server, { verify }, { before: [before] });
    expect((await post(url, bytes)).status).toBe(200);
    expect(given).toEqual([{ callback, body: received }]);
    expect(handled).toEqual([callback]);
  });

  const gone: [string, Middleware][] = [
    ['parses the body', server.parsers.json() as Middleware],
    ['leaves a text', server.parsers.text({ type: '*/*' }) as Middleware],
    [
      'leaves a text in rawBody',
      leaving((given) => ({ rawBody: given.toString(), body: JSON.parse(given.toString()) as unknown })),
    ],
    ['leaves an empty object of a body that it has read', leaving(() => ({ body: {} }))],
  ];
  test.each(gone)('each verifier that reads the body refuses behind middleware that %s', async (_what, before) => {
    const ofBody: Verifier = (_request, _callback, body = new Uint8Array()) => body.length === 0;
    const readers = [
      ...Object.entries(verifiers).flatMap(([name, make]) => (name.endsWith('Signature') ? [make()] : [])),
      hmacSignature({ header: 'x-signature', secrets: () => secret }),
      Object.assign(ofBody, { readsBody: true }),
    ];
    for (const verify of readers) {
      const { url, handled, logged } = await startRecording(server, { verify }, { before: [before] });
      const response = await post(url, callback);
      expect([response.status, response.body]).toEqual([401, unauthorized]);
      expect(handled).toEqual([]);
      const message = expect.stringMatching(/^A verifier needs the bytes.*mount the router before/) as string;
      expect(logged).toMatchObject([{ details: { outcome: 'unauthorized', err: { code: 'BODY_CONSUMED', message } } }]);
    }
  });

  /** Express's parsers as an app mounts them that keeps the bytes of each body. */
  const keeping = (parse: keyof NodeServer['parsers'], type: string): Middleware =>
    server.parsers[parse]({ type, extended: true, verify: keepBytes }) as Middleware;

  test.each([
    ['JSON', keeping('json', 'application/json')],
    ['text', keeping('text', '*/*')],
    ['bytes', server.parsers.raw({ type: '*/*' }) as Middleware],
    ['forms', keeping('urlencoded', 'application/x-www-form-urlencoded')],
  ])(
    'a signed body that is replayed as something else is handled as it was signed, behind a parser of %s',
    async (_what, before) => {
      const handled: unknown[] = [];
      const record = ({ event, data }: { event: string; data: { amount: number } }): void => {
        handled.push([event, data.amount]);
      };
      const verify = hmacSignature({ header: 'x-signature', secrets: secret });
      const options = {
        store: memoryStore(),
        service: transferService({ payload: coercing }),
        verify,
        onSuccess: record,
        onFailed: record,
      };
      const { url } = await start(server, { ...options, logger: false } as unknown as TransferCallbackOptions, {
        before: [keeping('json', 'application/json'), before],
      });
      const replays = ['', '; charset=utf-7'].map((charset) => `application/json${charset}`);
      for (const type of [...replays, 'text/plain; charset=utf-7', 'application/x-www-form-urlencoded']) {
        const response = await post(url, signedFailure, {
          headers: { 'Content-Type': type, 'X-Signature': sign(signedFailure) },
        });
        // What no parser has read is refused by its type, and by its charset.
        expect([200, 415, 401]).toContain(response.status);
      }
      expect(handled).toEqual([['transfer.failed', 5]]);
    },
  );

  test('a verifier that needs no bytes accepts behind middleware that parses the body', async () => {
    const verify = transferToken(secret);
    const { url } = await startRecording(server, { verify }, { before: [server.parsers.json()] });
    const at = verify.urlFor(url, callback.data.externalId);
    expect((await post(at, callback)).status).toBe(200);
  });
});
