import { readFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { invalidArgument } from '../../../src/lib/checks.js';
import { parseJson } from '../../../src/lib/text.js';
import { isLoopback } from '../attempt/address.js';
import { toHeaders, type AttemptHeaders } from '../attempt/headers.js';
import type { SandboxClock } from './clock.js';
import { refuseReader, refuseWriter } from './origin-guard.js';
import type { ResolvedSandboxOptions } from './options.js';
import type { PayoutService } from './payout-service.js';
import { transferScenarios } from './scenarios.js';
import type { ConsoleStream } from './stream.js';
import type { PageQuery } from './view.js';
import { bodyLimitBytes, readText, sendError } from './http-messages.js';

/** What the console needs of the sandbox. */
export interface ConsoleParts {
  readonly options: ResolvedSandboxOptions;
  readonly transfers: PayoutService;
  readonly stream: ConsoleStream;
  readonly clock: SandboxClock;
  readonly advance: (ms: number) => Promise<void>;
}

/** What a request leads to: a response, an error, or the stream of events for what the page asks for. */
type Reply =
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly content?: Buffer }
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly message: string }
  | { readonly query: PageQuery };

const contentTypes = {
  html: 'text/html; charset=utf-8',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
} as const;

const securityHeaders = {
  'Cache-Control': 'no-store',
  // Other programs write an externalId and the body of a response, so only the page's own files may run.
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; " +
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
};

/** Responds to every path of the console, which are those that `isConsolePath` names. Never rejects. */
export function consoleListener(parts: ConsoleParts) {
  return async function respondAsConsole(request: IncomingMessage, response: ServerResponse): Promise<void> {
    for (const [name, value] of Object.entries(securityHeaders)) response.setHeader(name, value);
    // The browser has hung up while it was sending, and reads no response.
    const reply = await findReply(parts, request).catch((error: unknown) => ({ status: 500, message: String(error) }));
    if ('query' in reply) {
      response.writeHead(200, { 'Content-Type': 'text/event-stream; charset=utf-8' });
      parts.stream.add(response, reply.query, toSettings(parts.options));
    } else if ('message' in reply) {
      sendError(response, reply);
    } else {
      response.writeHead(reply.status, reply.headers).end(reply.content);
    }
  };
}

/** Whether a request is for the console; the service has every other path. */
export function isConsolePath({ method, url = '', headers: { accept = '' } }: IncomingMessage): boolean {
  if (/^\/console(?:[/?]|$)/.test(url)) return true;
  return method === 'GET' && url === '/' && accept.includes('text/html');
}

async function findReply(parts: ConsoleParts, request: IncomingMessage): Promise<Reply> {
  const [path = '', query = ''] = String(request.url).split('?');
  if (!path.startsWith('/console/')) return { status: 302, headers: { Location: '/console/' } };
  const name = path.slice('/console/'.length);
  const act = actions.get(name);
  if (act !== undefined) return runAction(parts, act, request);
  if (request.method !== 'GET') return { status: 405, message: 'This path is a GET.', headers: { Allow: 'GET' } };
  return refuseReader(request) ?? (name === 'events' ? beginStream(parts, query) : readPageFile(name || 'index.html'));
}

function beginStream({ stream }: ConsoleParts, query: string): Reply {
  if (stream.isFull) return { status: 503, message: 'Too many pages of the console are open.' };
  const fields = new URLSearchParams(query);
  const read = (name: keyof PageQuery): string => fields.get(name) ?? '';
  return { query: { find: read('find'), outcome: read('outcome'), id: read('id') } };
}

/** Built, this module lies in `dist`, and the files of the page in `dist/console`. */
async function readPageFile(name: string): Promise<Reply> {
  const [, type] = /^[a-z]+\.(html|css|js|svg)$/.exec(name) ?? [];
  const file = new URL(`console/${name}`, import.meta.url);
  const content = type === undefined ? undefined : await readFile(file).catch(() => undefined);
  if (content === undefined) return { status: 404, message: `No ${name} here.` };
  return { status: 200, headers: { 'Content-Type': contentTypes[type as keyof typeof contentTypes] }, content };
}

/** What the page needs to create transfers, and to show an attempt as a command. */
function toSettings(options: ResolvedSandboxOptions) {
  const { host, apiKey, apiSecret, callbackUrl, callbackHeaders } = options;
  // Beyond loopback others may open the page. They are shown no secret that was given: it may be a real one.
  const mayShow = isLoopback(host);
  return {
    apiKey,
    apiSecret: mayShow || apiSecret === 'sandbox-secret' ? apiSecret : null,
    /** `null` if the sandbox has none, or makes one for each externalId. */
    callbackUrl: typeof callbackUrl === 'string' ? callbackUrl : null,
    hasCallbackUrl: callbackUrl !== undefined,
    /** Differs after a restart, even where the transfers have the same ids as before. */
    run: performance.timeOrigin,
    callbackHeaders: mayShow && typeof callbackHeaders !== 'function' ? callbackHeaders : maskHeaders(callbackHeaders),
    scenarios: transferScenarios,
  };
}

/** Returns the headers without their values. The headers that a function returns are different for each body. */
function maskHeaders(headers: AttemptHeaders): Record<string, string> {
  const body = Buffer.from('{}');
  try {
    return Object.fromEntries(Object.keys(toHeaders(headers, body)).map((name) => [name, '…']));
  } catch {
    return {}; // Each attempt shows what is wrong.
  }
}

export type ConsoleSettings = ReturnType<typeof toSettings>;

type Act = (parts: ConsoleParts, fields: Readonly<Record<string, unknown>>) => unknown;

/**
 * An action takes the arguments of the sandbox's method, which checks them, and ends when the method ends. Its result
 * is `data` of the response.
 */
const actions: ReadonlyMap<string, Act> = new Map(
  Object.entries<Act>({
    resend: ({ transfers }, { id }) => transfers.resend(requireText('id', id)),
    contradict: ({ transfers }, { id }) => transfers.contradict(requireText('id', id)),
    forge: ({ transfers }, { id, url, body }) =>
      transfers.forge(requireText('id', id), requireText('url', url), requireText('body', body)),
    clear: ({ transfers }) => {
      transfers.clear();
    },
    speed({ clock, stream }, { speed }) {
      clock.setSpeed(speed as number);
      stream.publish();
    },
    // Without a time, to the time when anything is due next.
    advance: ({ clock, advance }, { ms = Math.max(0, Math.ceil((clock.nextMs ?? 0) - clock.nowMs())) }) =>
      advance(ms as number),
  }),
);

async function runAction(parts: ConsoleParts, act: Act, request: IncomingMessage): Promise<Reply> {
  if (request.method !== 'POST') return { status: 405, message: 'This path is a POST.', headers: { Allow: 'POST' } };
  const refusal = refuseWriter(request);
  if (refusal !== undefined) return refusal;
  const text = await readText(request);
  if (text === undefined) return { status: 413, message: `The body is longer than ${bodyLimitBytes} bytes.` };
  const fields = parseJson(text);
  if (typeof fields !== 'object' || fields === null) return { status: 400, message: 'The body is not a JSON object.' };
  try {
    const data = await act(parts, fields as Parameters<Act>[1]);
    return data === undefined ? { status: 204 } : { status: 200, content: Buffer.from(JSON.stringify({ data })) };
  } catch (error) {
    return { status: 409, message: (error as Error).message };
  }
}

function requireText(name: string, value: unknown): string {
  if (typeof value === 'string') return value;
  throw invalidArgument(name, 'a string', value);
}
