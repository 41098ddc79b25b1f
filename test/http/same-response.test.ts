import { beforeAll, expect, test } from 'vitest';
import { headerToken, memoryStore, RetryLater, type TransferCallback } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import fc from '../support/helpers/fast-check.js';
import { roads, type Started } from '../support/servers/http-servers.js';
import { recordingLogger } from '../support/helpers/logger.js';
import { chunk, head, overSocket } from '../support/helpers/sockets.js';

const secret = 'a-secret-long-enough';

/** Finishes, fails or asks for another attempt, as the callback says. */
function handle({ data: { reference } }: TransferCallback): void {
  if (reference === 'fails') throw new Error('no');
  if (reference === 'later') throw new RetryLater('later');
}

const started: Started[] = [];
beforeAll(async () => {
  for (const server of roads) {
    const options = { store: memoryStore(), onSuccess: handle, onFailed: handle, logger: recordingLogger() };
    started.push(await server.start({ ...options, verify: headerToken('X-Token', secret), bodyLimitBytes: 2_000 }));
  }
  return () => Promise.all(started.map(({ close }) => close()));
});

const callbacks = fc
  .record({
    id: fc.constantFrom('one', 'two', 'three', 'four'),
    reference: fc.constantFrom('finishes', 'fails', 'later', 'Élodie 付款 😀'),
    isSuccess: fc.boolean(),
  })
  .map(({ id, reference, isSuccess }) => {
    const make = isSuccess ? transferSucceeded({ id, reference }) : transferFailed({ id, reference });
    return Buffer.from(JSON.stringify(make));
  });
const bodies = fc.oneof(
  { weight: 4, arbitrary: callbacks },
  { weight: 2, arbitrary: fc.json().map((text) => Buffer.from(text)) },
  fc.uint8Array({ maxLength: 64 }).map((bytes) => Buffer.from(bytes)),
  fc.nat(4_000).map((length) => Buffer.alloc(length, ' ')),
  fc.tuple(callbacks, fc.uint8Array({ maxLength: 3 })).map(([bytes, odd]) => Buffer.concat([odd, bytes])),
);
const usually = <T>(value: T, ...others: T[]) =>
  fc.oneof({ weight: 6, arbitrary: fc.constant(value) }, fc.constantFrom(value, ...others));
const requests = fc.record({
  method: usually('POST', 'PUT', 'DELETE', 'GET', 'OPTIONS'),
  token: usually<string | undefined>(secret, undefined, 'wrong', ''),
  type: usually<string | undefined>('application/json', undefined, 'text/plain', 'application/json; charset=latin1'),
  encoding: usually<string | undefined>(undefined, 'gzip', 'Identity'),
  path: usually('', '/', '/below', '?a=1'),
  isChunked: fc.boolean(),
  body: bodies,
});

/** It sends 300 random requests to each, one after the other: 25 s at a load of 30, and over 60 s at a load of 39. */
const sendingTimeoutMs = 240_000;

test('the listener and the handler give one response to any request', { timeout: sendingTimeoutMs }, async () => {
  await fc.assert(
    fc.asyncProperty(requests, async ({ method, token, type, encoding, path, isChunked, body }) => {
      const given = { 'X-Token': token, 'Content-Type': type, 'Content-Encoding': encoding };
      const headers: Record<string, string> = isChunked
        ? { 'Transfer-Encoding': 'chunked' }
        : { 'Content-Length': String(body.length) };
      for (const [name, value] of Object.entries(given)) if (value !== undefined) headers[name] = value;
      const content =
        isChunked && body.length > 0 ? Buffer.concat([chunk(body), chunk('')]) : isChunked ? chunk('') : body;
      const [fromListener, fromHandler] = await Promise.all(
        started.map(({ url }) =>
          overSocket(url, (socket) => {
            socket.write(head(url + path, headers, method));
            socket.write(content);
          }),
        ),
      );
      expect(parse(fromHandler)).toEqual(parse(fromListener));
    }),
    { numRuns: 300 },
  );
});

/** The parts of a response. Order and case of its headers are the server's, and the date passes. */
function parse(text = '') {
  const [top = '', body] = text.split('\r\n\r\n');
  const [status, ...lines] = top.split('\r\n');
  const headers = lines.map((line) => line.toLowerCase()).filter((line) => !line.startsWith('date:'));
  return { status, headers: headers.sort(), body };
}
