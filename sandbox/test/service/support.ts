import { once } from 'node:events';
import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { expect, onTestFinished } from 'vitest';
import { memoryStore, transferCallbackListener, type ReceiverOptions, type Verifier } from 'transfer-callbacks';
import { transferSandbox, type TransferSandbox } from 'transfer-sandbox';
import type { AttemptResponse } from '../../src/attempt/attempt.js';
import type { ConsoleSettings } from '../../src/service/console-listener.js';
import type { Message as StreamMessage } from '../../src/service/stream.js';
import type { Row } from '../../src/service/view.js';
import { serveForTest } from '../../../test/support/servers/serve-for-test.js';
import type { TransferSandboxOptions } from '../../src/service/options.js';
import type { TransferScenario } from '../../src/service/scenarios.js';

type Message = StreamMessage<ConsoleSettings>;

export async function startSandbox(options?: TransferSandboxOptions): Promise<TransferSandbox> {
  const sandbox = await transferSandbox(options);
  onTestFinished(() => sandbox.close());
  return sandbox;
}

export interface Received {
  readonly body: string;
  readonly headers: IncomingHttpHeaders;
  readonly method: string | undefined;
  readonly url: string | undefined;
  /** Into how many pieces the body was cut on its way. */
  readonly pieces: number;
}

export type Responding = (received: Received, count: number, response: ServerResponse) => unknown;

/** A merchant's endpoint that keeps what it receives and responds as told: with a status, or in its own way. */
export async function startMerchant(responding: Responding | readonly number[] = []) {
  const received: Received[] = [];
  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const { headers, method, url } = request;
    const one = { body: Buffer.concat(chunks).toString(), headers, method, url, pieces: chunks.length };
    received.push(one);
    if (typeof responding === 'function') await responding(one, received.length, response);
    else response.writeHead(responding[received.length - 1] ?? 200).end('noted');
  }
  const url = await serveForTest((request, response) => {
    respond(request, response).catch(() => response.destroy());
  });
  return { url: `${url}/callbacks`, received, bodies: () => received.map(({ body }) => body) };
}

export type MerchantOptions = Partial<Pick<ReceiverOptions, 'service' | 'confirm' | 'onSuccess' | 'onFailed'>> & {
  readonly verify?: Verifier | readonly Verifier[];
};

/**
 * A merchant with this package's own receiver, whose handlers do nothing unless others are given. Resolves with its
 * address.
 */
export function startReceiver(options: MerchantOptions = {}): Promise<string> {
  const handle = (): void => undefined;
  const usual = { store: memoryStore(), onSuccess: handle, onFailed: handle, logger: false } as const;
  return serveForTest(transferCallbackListener({ ...usual, ...options }));
}

interface Envelope {
  readonly error: boolean;
  readonly statusCode: number;
  readonly message: string;
  readonly data: Record<string, unknown> | null;
}

export async function call(sandbox: TransferSandbox, path: string, init: RequestInit = {}) {
  const { apiKey, apiSecret } = sandbox.keys.valid;
  const response = await fetch(`${sandbox.baseUrl}${path}`, {
    ...init,
    headers: init.headers ?? { 'Content-Type': 'application/json', 'x-api-key': apiKey, 'x-api-secret': apiSecret },
  });
  return { status: response.status, body: (await response.json()) as Envelope };
}

export function create(sandbox: TransferSandbox, request: unknown) {
  const body = typeof request === 'string' ? request : JSON.stringify(request);
  return call(sandbox, '/transactions/transfer', { method: 'POST', body });
}

/** The transfer `one` of a scenario, from its creation on, with a manual clock. */
export async function play(scenario: TransferScenario = 'success', responding?: Responding | readonly number[]) {
  const merchant = await startMerchant(responding);
  const sandbox = await startSandbox({ clock: 'manual', scenario, callbackUrl: merchant.url });
  const created = await create(sandbox, { externalId: 'one' });
  return { ...merchant, sandbox, created };
}

/** Longer than any scenario takes, in sandbox time. */
export const longEnoughMs = 2_000_000;

export function query(sandbox: TransferSandbox, name: string) {
  return call(sandbox, `/transactions/${encodeURIComponent(name)}`);
}

export function headersOf({ apiKey, apiSecret }: TransferSandbox['keys']['valid']): Record<string, string> {
  return { 'x-api-key': apiKey, 'x-api-secret': apiSecret };
}

/** The documented error body (service §2.3), with any message. */
export function errorBody(statusCode: number) {
  return { error: true, statusCode, message: expect.any(String) as string, data: null };
}

/** Returns the status of a response, or its error. */
export const toText = (response: AttemptResponse): string =>
  String('status' in response ? response.status : response.error);

/** Sends a request as a browser does, whose `Host` and Sec-Fetch headers `fetch` does not let through. */
export async function get(url: string, headers: Record<string, string> = {}, method = 'GET') {
  const request = httpRequest(url, { method, headers, agent: false }).end();
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  const content = (await response.setEncoding('utf8').toArray()) as string[];
  return { status: Number(response.statusCode), headers: response.headers, body: content.join('') };
}

/** Reads the stream as the page does, message by message. `query` is that of the page. */
export async function readStream(sandbox: TransferSandbox, query = '') {
  const leaving = new AbortController();
  const leave = (): void => {
    leaving.abort();
  };
  onTestFinished(leave);
  const response = await fetch(`${String(sandbox.consoleUrl)}events?${query}`, { signal: leaving.signal });
  expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
  const messages: Message[] = [];
  const received = { text: '', length: 0 };
  async function read(): Promise<void> {
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      received.text += chunk;
      received.length += chunk.length;
      for (let end = received.text.indexOf('\n\n'); end !== -1; end = received.text.indexOf('\n\n')) {
        const [, data] = /^data: (.+)/m.exec(received.text.slice(0, end)) ?? [];
        if (data !== undefined) messages.push(JSON.parse(data) as Message);
        received.text = received.text.slice(end + 2);
      }
    }
  }
  const ended = read().catch(() => undefined);
  await expect.poll(() => messages).not.toEqual([]);
  return { messages, received, ended, leave, page: () => assemble(messages) };
}

/** What a page that has read all messages shows: its rows, newest first, and the transfer with all its events. */
function assemble(messages: readonly Message[]) {
  const rows = new Map<string, Row>();
  let shown: Message['shown'];
  for (const message of messages) {
    for (const id of message.gone) rows.delete(id);
    for (const row of message.rows) rows.set(row.id, row);
    const change = message.shown;
    if (change === null) shown = undefined;
    else if (change !== undefined) {
      shown = { ...change, events: [...(shown?.events.slice(0, change.from) ?? []), ...change.events] };
    }
  }
  const { total, matching } = messages.at(-1) ?? expect.fail('no message');
  const listed = [...rows.values()].sort((a, b) => b.place - a.place).map(({ externalId }) => externalId);
  return { total, matching, listed, rows: [...rows.values()], shown };
}
