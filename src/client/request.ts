import { describeGiven } from '../lib/checks.js';
import { deadlineSignal, pause, withDeadline } from '../lib/deadline.js';
import { messageOf, parseJson, toPrintable } from '../lib/text.js';
import { TransferClientError, type ServiceErrorBody, type TransferClientErrorCode } from './errors.js';

/** Looks up the global `fetch` at each request, so that instrumentation and test servers may replace it later. */
export const callGlobalFetch: typeof fetch = (...request) => globalThis.fetch(...request);

/** What every request to the service needs. */
export interface ServiceAccess {
  /** What every path is added to. */
  readonly baseUrl: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Removed from every string that an error may show. */
  readonly secrets: readonly string[];
  readonly timeoutMs: number;
  readonly fetch: typeof fetch;
  /** The statuses of a service that was defined mean none of the documented authentication faults. */
  readonly isDefined?: boolean;
}

/** The result of a request: a response, or the error that prevented one. */
type RequestResult =
  | {
      responded: true;
      status: number;
      /** `undefined` if it is longer than 1 MiB. */
      text: string | undefined;
      retryAfterMs: number | undefined;
    }
  | { responded: false; error: unknown };

/** Decompressed bytes: a few kilobytes of gzip can hold gigabytes. */
const longestResponseBytes = 1_048_576;

/** Sends one request and reads its response, within `timeoutMs`. Rejects only if fetch blocks the port. */
export async function sendOnce(
  { baseUrl, headers, secrets, timeoutMs, fetch }: ServiceAccess,
  path: string,
  init: Omit<RequestInit, 'headers'> & Partial<Pick<ServiceAccess, 'headers'>>,
  signal: AbortSignal | undefined,
): Promise<RequestResult> {
  async function send(deadline: AbortSignal): Promise<RequestResult> {
    try {
      const response = await fetch(baseUrl + path, {
        ...init,
        headers: { ...headers, ...init.headers },
        // A redirect would send the secret to another address.
        redirect: 'manual',
        signal: deadline,
      });
      return {
        responded: true,
        status: response.status,
        text: await readBounded(response),
        retryAfterMs: parseRetryAfter(response.headers.get('retry-after')),
      };
    } catch (error) {
      throw deadline.aborted ? error : explain(error, secrets);
    }
  }
  try {
    return await withDeadline(deadlineSignal(timeoutMs, signal), send);
  } catch (error) {
    if (error instanceof TransferClientError) throw error;
    return { responded: false, error };
  }
}

const attempts = 3;
const firstPauseMs = 250;
/** A longer Retry-After is not waited for: the error carries it, and the caller decides. */
const longestPauseMs = 10_000;

/**
 * Retries an idempotent request on transient failures: up to 3 attempts, jittered backoff. Rejects with the signal's
 * reason.
 */
export async function sendWithRetries(
  access: ServiceAccess,
  path: string,
  signal: AbortSignal | undefined,
): Promise<RequestResult> {
  for (let attempt = 1; ; attempt += 1) {
    const result = await sendOnce(access, path, {}, signal);
    if (attempt === attempts || !isTransient(result)) return result;
    const backoffMs = firstPauseMs * 2 ** (attempt - 1) * (0.5 + Math.random());
    const pauseMs = Math.max(backoffMs, (result.responded ? result.retryAfterMs : undefined) ?? 0);
    if (pauseMs > longestPauseMs) return result;
    await pause(pauseMs, { signal });
    signal?.throwIfAborted();
  }
}

/**
 * Statuses that in HTTP refuse the request without acting on it. 400 and 404 are documented for faults of
 * authentication only (service §5.4). Not 408, 409 or 499: those may follow an action.
 */
const refusals = new Set([400, 401, 403, 404, 405, 413, 415, 421, 422, 429, 431]);

/**
 * Returns the response if its status is 2xx. Throws REFUSED for a refusal, and `otherwise` for anything else; `meaning`
 * tells what that means for the transfer.
 */
export function requireSuccess(
  result: RequestResult,
  access: ServiceAccess,
  otherwise: TransferClientErrorCode,
  meaning: string,
): Extract<RequestResult, { responded: true }> {
  // Without path and query: only the host tells where a wrong address leads.
  const { origin } = new URL(access.baseUrl);
  if (!result.responded) {
    const why = describeSilence(result.error, access.timeoutMs);
    throw new TransferClientError(otherwise, `No response came from ${origin}${why}. ${meaning}`, {
      cause: result.error,
    });
  }
  const { status, text, retryAfterMs } = result;
  if (status >= 200 && status < 300) return result;
  const body = parseErrorBody(text, access.secrets);
  const details = { status, body, retryAfterMs, ...(access.isDefined === true && { authenticationFaults: [] }) };
  const shown = body === undefined ? `${status}` : `${status}, "${toPrintable(body.message)}"`;
  if (refusals.has(status)) {
    throw new TransferClientError('REFUSED', `The service at ${origin} refused: ${shown}.`, details);
  }
  throw new TransferClientError(otherwise, `The service at ${origin} responded with ${shown}. ${meaning}`, details);
}

function describeSilence(error: unknown, timeoutMs: number): string {
  // `abort` takes any reason, even `null` or a string.
  const { name, code } = (error ?? {}) as Partial<NodeJS.ErrnoException>;
  if (name === 'TimeoutError') return ` within ${timeoutMs} ms`;
  // A message of OpenSSL has a line of its source file in it.
  return `: ${code?.startsWith('ERR_SSL') === true ? code : messageOf(error).replace(/\.$/, '')}`;
}

/**
 * Throws INVALID_ID for an id that a URL could read as several segments or as a way up, as `encodeURIComponent('..')`.
 * A URL loses the blanks at its end, so `.. ` would also be a way up.
 */
export function toPathSegment(id: unknown): string {
  if (typeof id === 'string' && id.length <= 255 && /^(?!\.{1,2}$|\s)[^/\\?#%\p{Cc}\p{Cf}\p{Cs}]+(?<!\s)$/u.test(id)) {
    return encodeURIComponent(id);
  }
  const isNumeric = typeof id === 'number' || typeof id === 'bigint';
  throw new TransferClientError(
    'INVALID_ID',
    'An id is 1 to 255 characters, not `.` or `..`, without a blank at an end, and has no slash, backslash, ?, #, % or control character' +
      (isNumeric ? `. It is a string, not ${describeGiven(id)}: write \`String(id)\`.` : '.'),
  );
}

async function readBounded({ body }: Response): Promise<string | undefined> {
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  for await (const chunk of (body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += chunk.byteLength;
    // Leaving the loop cancels the stream, and with it the download.
    if (bytes > longestResponseBytes) return undefined;
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

/** Whether a retry may help. 429 is not documented (service §8), but in HTTP it means "try later". */
function isTransient(result: RequestResult): boolean {
  return !result.responded || result.status >= 500 || result.status === 429;
}

/** Seconds or a date, as in HTTP; `undefined` for anything else. */
function parseRetryAfter(header: string | null): number | undefined {
  const value = header?.trim() ?? '';
  if (/^\d+$/.test(value)) return Number(value) * 1_000;
  // V8 reads `-5` and `1.5` as years.
  const ms = /[a-z]/i.test(value) ? Date.parse(value) - Date.now() : NaN;
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}

/**
 * The cause of a failed fetch, reduced to name, message and code: it may hold the bytes that were exchanged, and with
 * them the secret.
 */
function explain(error: unknown, secrets: readonly string[]): Error {
  const cause = (error as { cause?: unknown } | undefined)?.cause ?? error;
  const { name, message, code } = (cause ?? {}) as Partial<NodeJS.ErrnoException>;
  if (message === 'bad port') {
    return new TransferClientError('INVALID_ARGUMENT', 'fetch blocks the port of this address. Nothing was sent.');
  }
  // An error of several addresses has a code and no message. Node's fetch has neither for a 407, which it never
  // returns.
  const text = message === '' ? (code ?? 'fetch gave no reason: perhaps a proxy responded with 407') : message;
  const shown = new Error(redact(text ?? String(cause), secrets));
  return Object.assign(shown, { name: name ?? shown.name, code });
}

function redact(text: string, secrets: readonly string[]): string {
  return secrets.reduce((clean, secret) => clean.replaceAll(secret, '[redacted]'), text);
}

/** The documented error body (service §2.3), if `text` is one. */
function parseErrorBody(text: string | undefined, secrets: readonly string[]): ServiceErrorBody | undefined {
  const body = parseJson(text) ?? {};
  const { error, statusCode, message, data } = body as Partial<Record<keyof ServiceErrorBody, unknown>>;
  if (error !== true || typeof statusCode !== 'number' || typeof message !== 'string' || data !== null)
    return undefined;
  // The service may repeat what it was sent.
  return { error, statusCode, message: redact(message, secrets), data };
}
