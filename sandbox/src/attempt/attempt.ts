import { request as httpRequest, type ClientRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { setTimeout as pause } from 'node:timers/promises';
import { messageOf, parseJson } from '../../../src/lib/text.js';
import { toHeaders, type AttemptHeaders } from './headers.js';

/** The response to one attempt, or why there was none. `body` is its first 4 096 bytes as text. */
export type AttemptResponse = { status: number; body: string; headers?: IncomingHttpHeaders } | { error: string };

/** Whether the response is a 2xx: nothing else acknowledges a callback (service §4.3). */
export function isAcknowledgement(response: AttemptResponse): boolean {
  return 'status' in response && response.status >= 200 && response.status < 300;
}

/** Whether no response began in time. A connection that was refused or closed is not silent. */
export function isSilent(response: AttemptResponse): boolean {
  return 'error' in response && response.error.startsWith('no response within');
}

/** Whether the connection broke, or what stands before an app found none. A lost response is not the app's. */
export function isBroken(response: AttemptResponse): boolean {
  if ('status' in response) return [502, 503, 504].includes(response.status);
  return response.error !== 'response lost' && !/^no (?:end of the )?response/.test(response.error);
}

/** Returns the reason in the body of a response: the message of an error, or the outcome of a success. */
export function findReason(response: AttemptResponse): string | undefined {
  const body = 'body' in response ? parseJson(response.body) : undefined;
  const { message, outcome } = (body ?? {}) as { message?: unknown; outcome?: unknown };
  return [message, outcome].find((text) => typeof text === 'string');
}

/** Returns the Content-Type of a form, or of JSON. */
export function toContentType(isForm: boolean): string {
  return isForm ? 'application/x-www-form-urlencoded' : 'application/json';
}

export interface AttemptOptions {
  /**
   * The documented one is the default (service §4.3).
   * @default 'POST'
   */
  method?: string | undefined;
  /**
   * The documented one is the default (service §4.3).
   * @default 'application/json'
   */
  contentType?: string | undefined;
  /** Sent beside the headers of the attempt itself. See `requireHeaders`. */
  headers?: AttemptHeaders | undefined;
  /**
   * Accepts any certificate of an https server, for a server whose address is known to be right.
   * @default false
   */
  anyCertificate?: boolean | undefined;
  /**
   * How long to wait for the whole response, in milliseconds of real time. How long the service waits is not
   * documented.
   * @default 10_000
   */
  timeoutMs?: number | undefined;
  /** Ends the attempt without a response. */
  signal?: AbortSignal | undefined;
  /** Sends the body in small pieces with pauses, as over a bad line. */
  pieces?: boolean | undefined;
  /** Cuts the connection when the merchant responds, instead of reading the response. */
  dropResponse?: boolean | undefined;
  /** Called when the connection is open. The head is sent before, the body when this resolves. See `startTogether`. */
  beforeBody?: (() => Promise<void>) | undefined;
}

/** A longer body is read to its end; the rest is dropped. */
const keptBodyBytes = 4_096;
const pieceBytes = 64;
const betweenPiecesMs = 5;

/**
 * Makes one delivery attempt on its own connection, as the service does (service §4.3): a POST of `body`,
 * unchanged. Redirects are not followed. Never rejects.
 */
export function attemptCallback(
  url: string,
  body: string | Buffer,
  options: AttemptOptions = {},
): Promise<AttemptResponse> {
  const { timeoutMs = 10_000, signal, pieces = false, dropResponse = false, beforeBody } = options;
  const bytes = Buffer.from(body);

  return new Promise<AttemptResponse>((resolve) => {
    const request = requestFor(url, bytes, options);
    let isResponding = false;
    function end(response: AttemptResponse): void {
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
      resolve(response);
      request.destroy();
    }
    function abort(): void {
      end({ error: 'aborted' });
    }
    const timer = setTimeout(() => {
      end({ error: `${isResponding ? 'no end of the response' : 'no response'} within ${timeoutMs} ms` });
    }, timeoutMs);

    // Several of these events may come: the promise resolves with the first.
    request.on('error', (error) => {
      end({ error: messageOf(error) });
    });
    request.on('close', () => {
      // A response without a length ends with its connection: its own `end` follows this event.
      if (!isResponding) end({ error: 'connection closed without a response' });
    });
    request.on('response', (response) => {
      isResponding = true;
      if (dropResponse) end({ error: 'response lost' });
      else readToEnd(response, end);
    });

    signal?.addEventListener('abort', abort);
    if (signal?.aborted === true) abort();
    else if (pieces) void sendInPieces(request, bytes);
    else if (beforeBody !== undefined) sendWhenOpen(request, bytes, beforeBody);
    else request.end(bytes);
    // `url` is not a URL of HTTP or HTTPS, or the function of the headers throws.
  }).catch((error: unknown) => ({ error: String(error) }));
}

function requestFor(url: string, bytes: Buffer, options: AttemptOptions): ClientRequest {
  const { method = 'POST', contentType = 'application/json', headers = {}, anyCertificate } = options;
  return (new URL(url).protocol === 'https:' ? httpsRequest : httpRequest)(url, {
    method,
    headers: { ...toHeaders(headers, bytes), 'Content-Type': contentType, 'Content-Length': bytes.length },
    // An explicit `true` would overrule NODE_TLS_REJECT_UNAUTHORIZED.
    ...(anyCertificate && { rejectUnauthorized: false }),
    // The merchant could close a kept connection just when the next attempt is sent on it.
    agent: false,
  });
}

function readToEnd(response: IncomingMessage, end: (response: AttemptResponse) => void): void {
  let kept = Buffer.alloc(0);
  response.on('data', (chunk: Buffer) => {
    kept = Buffer.concat([kept, chunk]).subarray(0, keptBodyBytes);
  });
  response.on('end', () => {
    end({ status: Number(response.statusCode), body: kept.toString(), headers: response.headers });
  });
  response.on('error', () => {
    end({ error: 'response cut short' });
  });
}

async function sendInPieces(request: ClientRequest, bytes: Buffer): Promise<void> {
  for (let from = 0; from < bytes.length && !request.destroyed; from += pieceBytes) {
    request.write(bytes.subarray(from, from + pieceBytes));
    await pause(betweenPiecesMs);
  }
  if (!request.destroyed) request.end();
}

function sendWhenOpen(request: ClientRequest, bytes: Buffer, beforeBody: () => Promise<void>): void {
  async function sendBody(): Promise<void> {
    await beforeBody();
    // The endpoint may have responded to the head alone.
    if (!request.destroyed) request.end(bytes);
  }
  request.on('socket', (socket) => {
    socket.once(request.protocol === 'https:' ? 'secureConnect' : 'connect', () => void sendBody());
  });
  request.flushHeaders();
}

/** An endpoint accepts a connection after it is open, and reads the head then. In milliseconds. */
const acceptingMs = 50;

/** An endpoint that makes one TLS handshake after the other would never have all of them open. In milliseconds. */
const longestWaitMs = 5_000;

/**
 * Returns the `beforeBody` of so many concurrent attempts. Each waits there until all have opened their connections, so
 * that their bodies arrive together: otherwise the first one may be handled before the last one is connected.
 */
export function startTogether(attempts: number): () => Promise<void> {
  let missing = attempts;
  let release = (): void => undefined;
  const allOpen = new Promise<void>((resolve) => (release = resolve));
  return async () => {
    missing -= 1;
    if (missing === 0) release();
    const giveUp = new AbortController();
    await Promise.race([allOpen, pause(longestWaitMs, undefined, { signal: giveUp.signal }).catch(() => undefined)]);
    giveUp.abort();
    await pause(acceptingMs);
  };
}
