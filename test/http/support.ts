import type { IncomingMessage, ServerResponse } from 'node:http';
import { expect, onTestFinished } from 'vitest';
import {
  basicAuth,
  headerToken,
  hmacSignature,
  ipAllowList,
  memoryStore,
  messageSignature,
  publicKeySignature,
  transferToken,
  urlToken,
  type CallbackStore,
  type TransferCallback,
  type TransferCallbackOptions,
  type Verifier,
} from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import type { Middleware, Started } from '../support/servers/http-servers.js';
import { errorBody, post, type PostResponse, type Sent } from '../support/helpers/post.js';
import { recordingOptions } from '../support/helpers/logger.js';
import { chunk, head, overSocket } from '../support/helpers/sockets.js';
import { keyPairs, toPem } from './verifiers/keys.js';

/** Starts `server` for the running test. */
export async function start<Args extends unknown[]>(
  server: { readonly start: (...args: Args) => Promise<Started> },
  ...args: Args
): Promise<Started> {
  const started = await server.start(...args);
  onTestFinished(started.close);
  return started;
}

/** Starts `server` on a memory store, with handlers and a logger that record what they get, and with these changes. */
export async function startRecording<Args extends unknown[]>(
  server: { readonly start: (options: TransferCallbackOptions, ...args: Args) => Promise<Started> },
  changes: Partial<TransferCallbackOptions> = {},
  ...args: Args
) {
  const { options, handled, logged } = recordingOptions();
  const given = { ...options, ...changes } as TransferCallbackOptions;
  return { ...(await start(server, given, ...args)), handled, logged };
}

/** What an app's middleware sees and may leave. */
type Seen = IncomingMessage & { body?: unknown; rawBody?: unknown };

/** A middleware that does this, and then passes the request on. */
export const doing =
  (act: (request: Seen, response: ServerResponse) => unknown): Middleware =>
  (request, response, next) => {
    const done = act(request, response);
    if (!(done instanceof Promise)) next();
    else void done.finally(next);
  };

/** A middleware that reads the whole body, and leaves what `make` returns on the request. */
export const leaving = (make: (bytes: Buffer) => object): Middleware =>
  doing(async (request) => Object.assign(request, make(Buffer.concat((await request.toArray()) as Buffer[]))));

/** The key of a foreign service. */
const publicKey = toPem(keyPairs.ed25519[0]);

/** Each verifier of the package, as it refuses a stranger. */
export const verifiers: Readonly<Record<string, () => Verifier>> = {
  urlToken: () => urlToken('first-secret-0123456789'),
  transferToken: () => transferToken('first-secret-0123456789'),
  headerToken: () => headerToken('X-Token', 'first-secret-0123456789'),
  basicAuth: () => basicAuth({ username: 'service', password: 'a-secret-long-enough' }),
  hmacSignature: () => hmacSignature({ header: 'X-Signature', secrets: 'first-secret-0123456789' }),
  publicKeySignature: () => publicKeySignature({ header: 'X-Signature', publicKeys: publicKey }),
  messageSignature: () => messageSignature({ publicKeys: publicKey, url: 'https://merchant.example/callbacks' }),
  ipAllowList: () => ipAllowList(['203.0.113.7']),
};

export const json = { 'Content-Type': 'application/json' };
export const unauthorized = errorBody(401, 'The sender is not verified.');

/** Delivers without the `Connection: close` of a client that asks once: only what the server asks for is to be seen. */
export function deliver(url: string, callback: unknown = transferSucceeded(), method = 'POST'): Promise<PostResponse> {
  return post(url, callback, { method, headers: { Connection: 'keep-alive' } });
}

/** Sends a body in chunks of this many bytes. Resolves with the response as text. */
export function sendInChunks(url: string, body: string | Uint8Array, chunkBytes: number): Promise<string> {
  const bytes = Buffer.from(body as string);
  return overSocket(url, (socket) => {
    socket.write(head(url, { ...json, 'Transfer-Encoding': 'chunked' }));
    for (let at = 0; at < bytes.length; at += chunkBytes) socket.write(chunk(bytes.subarray(at, at + chunkBytes)));
    socket.write(chunk(''));
  });
}

/** The headers that say something of the outcome, and those that the package has no business to set. */
export function ownHeaders({ headers }: PostResponse): Record<string, unknown> {
  const ours = Object.entries(headers).filter(
    ([name]) => !['date', 'keep-alive', 'x-powered-by', 'content-length'].includes(name),
  );
  return Object.fromEntries(ours);
}

/** What every response on a connection that is kept open has. */
export const keptOpen = { 'content-type': 'application/json; charset=utf-8', connection: 'keep-alive' };

/** A callback with characters of one, two, three and four bytes. */
export function manyScripts() {
  return transferSucceeded({
    reference: 'Élodie — 付款 — مرحبا — 😀',
    vouchercode: '\u0000"\\\u2028',
    provider: 'Ωμέγα',
  });
}

/** Starts `server` with this verifier, and counts what reaches the store and the handlers. */
export async function startGuarded<Args extends unknown[]>(
  server: { readonly start: (options: TransferCallbackOptions, ...args: Args) => Promise<Started> },
  verify: unknown,
  ...args: Args
) {
  const memory = memoryStore();
  const claims: string[] = [];
  const store: CallbackStore = {
    claim(key, request) {
      claims.push(key);
      return memory.claim(key, request);
    },
  };
  const { url, handled, logged } = await startRecording(server, { store, verify: verify as Verifier }, ...args);

  return {
    url,
    logged,
    /** What verifiers have thrown. */
    thrown: (): unknown[] => logged.flatMap(({ details }) => ('err' in details ? [details.err] : [])),
    admits: async (at: string, sent?: Sent, callback: TransferCallback = transferSucceeded()): Promise<void> => {
      const response = await post(at, callback, sent);
      expect([response.status, response.body]).toEqual([200, '{"outcome":"processed"}']);
      expect(handled.at(-1)).toEqual(callback);
    },
    refuses: async (at: string, sent?: Sent, callback: unknown = transferSucceeded()): Promise<void> => {
      const before = [claims.length, handled.length];
      const response = await post(at, callback, sent);
      expect([response.status, response.body]).toEqual([401, unauthorized]);
      expect([claims.length, handled.length]).toEqual(before);
    },
  };
}
