import type { z } from 'zod';
import { invalidOption, invalidSecret, onlyKnownOptions, wholeNumber } from '../core/errors.js';
import { callOnce, callPatiently, errorBodyOf, parsed, type Answer } from './call.js';
import { TransferClientError, type TransferClientErrorCode } from './errors.js';

export interface TransferClientOptions {
  /** Where the service is, without the `/transactions` of its paths. */
  baseUrl: string;
  /** From the merchant's dashboard (service §5). */
  apiKey: string;
  /** From the merchant's dashboard (service §5). Goes into the header of each request, and nowhere else. */
  apiSecret: string;
  /** How long one call may take, the answer included, in milliseconds. Default 10 000. */
  timeoutMs?: number | undefined;
  /** In place of Node's own, for a proxy or for instrumentation. */
  fetch?: typeof fetch | undefined;
  /**
   * Finds the transaction in the parsed answer to a query, whose shape is not documented (service §4.2). By default it
   * is looked for under `data` and at the top: an object with the documented `id`, `externalId` and `status`.
   */
  readTransaction?: ((body: unknown) => Transaction | undefined) | undefined;
}

/** What a creation is asked for. Only `callbackUrl` is documented (service §2.2); the rest is sent as it is given. */
export interface TransferRequest {
  callbackUrl: string;
  [field: string]: unknown;
}

/** A transaction as it was read. Final with `status` SUCCESS or FAILED; other statuses are not documented (service §3). */
export interface Transaction {
  id: string;
  externalId: string;
  status: string;
  [field: string]: unknown;
}

export interface CreateOptions<T> {
  /** Checks the answer and gives it its type. Without one it is handed over as parsed. */
  schema?: z.ZodType<T> | undefined;
  signal?: AbortSignal | undefined;
}

/** The merchant's calls to the service. Each rejects with a `TransferClientError`. */
export interface TransferClient {
  /**
   * Creates a transfer (service §4.1), and answers with what the service answered. Sent once and never again by
   * itself, because the service may have acted: OUTCOME_UNKNOWN says so, and REFUSED that it has not.
   */
  createTransfer<T = unknown>(request: TransferRequest, options?: CreateOptions<T>): Promise<T>;
  /**
   * Reads a transfer by the service's id or your own (service §4.2). Asked up to 3 times, with jittered backoff, while
   * the service cannot be reached or answers 5xx or 429.
   */
  getTransaction(idOrExternalId: string, options?: { signal?: AbortSignal | undefined }): Promise<Transaction>;
}

/**
 * The statuses that say no to the request itself: 400 and 404 are documented (service §5.4), the others mean it wherever
 * HTTP is spoken. Not so 408, 409 or 499: whoever answers with these may have acted before.
 */
const refusals = new Set([400, 401, 403, 404, 405, 413, 415, 421, 422, 429, 431]);

const knownOptions = ['baseUrl', 'apiKey', 'apiSecret', 'timeoutMs', 'fetch', 'readTransaction'];

/** Makes a client of the transfer service. Throws INVALID_OPTION. */
export function transferClient(options: TransferClientOptions): TransferClient {
  onlyKnownOptions(options, knownOptions);
  const {
    apiKey,
    apiSecret,
    timeoutMs = 10_000,
    fetch = globalThis.fetch,
    readTransaction = findTransaction,
  } = options;
  const transactions = `${baseUrlOf(options.baseUrl)}/transactions`;
  for (const [name, value] of Object.entries({ apiKey, apiSecret })) {
    // A header cannot carry anything else, and fetch would show the value in its complaint.
    if (typeof value !== 'string' || !/^[!-~]+$/.test(value)) {
      throw invalidSecret(name, 'a text of visible ASCII characters', value);
    }
  }
  wholeNumber('timeoutMs', timeoutMs, 1);
  for (const [name, value] of Object.entries({ fetch, readTransaction })) {
    if (typeof value !== 'function') throw invalidOption(name, 'a function', value);
  }
  const secrets = [apiSecret, apiKey];
  const headers = { 'x-api-key': apiKey, 'x-api-secret': apiSecret, 'Content-Type': 'application/json' };

  async function createTransfer<T>(request: TransferRequest, { schema, signal }: CreateOptions<T> = {}): Promise<T> {
    const { externalId } = request;
    const body = new Blob([JSON.stringify(request)]);
    signal?.throwIfAborted();
    const answer = await callOnce({
      url: `${transactions}/transfer`,
      init: {
        method: 'POST',
        headers: { ...headers, 'Content-Length': String(body.size) },
        // What has been streamed fetch cannot send again by itself, as it would after a 421.
        body: body.stream(),
        duplex: 'half',
      },
      secrets,
      timeoutMs,
      signal,
      fetch,
    });
    const query = typeof externalId === 'string' ? `query it by its externalId, ${externalId}` : 'query it';
    const text = accepted(
      answer,
      'OUTCOME_UNKNOWN',
      `The transfer may have been created: ${query}, before anything else.`,
    );
    const value = parsed(text);
    if (value === undefined) {
      throw unreadable(answer, `The transfer was accepted, but the answer is not JSON: ${query}.`);
    }
    if (schema === undefined) return value as T;
    let checked: z.ZodSafeParseResult<T>;
    try {
      checked = schema.safeParse(value);
    } catch (cause) {
      throw unreadable(answer, `The transfer was accepted, but the schema threw: ${query}.`, cause);
    }
    if (checked.success) return checked.data;
    const at = checked.error.issues.map(({ path }) => path.map(String).join('.') || 'the top').join(', ');
    throw unreadable(answer, `The transfer was accepted, but the answer does not fit the schema, at ${at}: ${query}.`);
  }

  async function getTransaction(
    idOrExternalId: string,
    { signal }: { signal?: AbortSignal | undefined } = {},
  ): Promise<Transaction> {
    const url = `${transactions}/${pathSegment(idOrExternalId)}`;
    signal?.throwIfAborted();
    const answer = await callPatiently({ url, init: { headers }, secrets, timeoutMs, signal, fetch });
    signal?.throwIfAborted();
    const text = accepted(answer, 'UNAVAILABLE', 'The transfer could not be read.');
    let transaction: Transaction | undefined;
    try {
      transaction = readTransaction(parsed(text));
    } catch (cause) {
      throw unreadable(answer, '`readTransaction` threw.', cause);
    }
    if (transaction !== undefined) return transaction;
    throw unreadable(
      answer,
      'No transaction with id, externalId and status was found in the answer, under `data` or at the top: say where it is with `readTransaction`.',
    );
  }

  /** The text of a 2xx; throws REFUSED for a refusal, and `otherwise` for whatever leaves the question open. */
  function accepted(answer: Answer, otherwise: TransferClientErrorCode, message: string): string {
    if (!answer.came) throw new TransferClientError(otherwise, `No answer came. ${message}`, { cause: answer.error });
    const { status, text, retryAfterMs } = answer;
    if (status >= 200 && status < 300) return text;
    const body = errorBodyOf(text, secrets);
    const details = { status, body, retryAfterMs };
    const said = body === undefined ? `${status}` : `${status}, «${body.message}»`;
    if (refusals.has(status)) throw new TransferClientError('REFUSED', `The service refused: ${said}.`, details);
    throw new TransferClientError(otherwise, `The service answered ${said}. ${message}`, details);
  }

  return { createTransfer, getTransaction };
}

function unreadable(answer: Answer, message: string, cause?: unknown): TransferClientError {
  return new TransferClientError('UNREADABLE_ANSWER', message, {
    status: answer.came ? answer.status : undefined,
    cause,
  });
}

function baseUrlOf(given: unknown): string {
  const url = typeof given === 'string' && URL.canParse(given) ? new URL(given) : undefined;
  if (
    url === undefined ||
    !/^https?:$/.test(url.protocol) ||
    url.username + url.password !== '' ||
    /[?#]/.test(url.href)
  ) {
    // Not shown: it may hold a password.
    throw invalidSecret('baseUrl', 'an http or https URL without credentials, query or fragment', given);
  }
  return url.href.replace(/\/+$/, '');
}

/** Nothing that a URL could read as more than one segment, or as a way up: `encodeURIComponent('..')` is still `..`. */
function pathSegment(id: unknown): string {
  if (typeof id === 'string' && id.length <= 255 && /^(?!\.{1,2}$)[^/\\?#%\p{Cc}\p{Cf}\p{Cs}]+$/u.test(id)) {
    return encodeURIComponent(id);
  }
  throw new TransferClientError(
    'INVALID_ID',
    'An id is 1 to 255 characters, not `.` or `..`, and has no slash, backslash, ?, #, % or control character.',
  );
}

function findTransaction(body: unknown): Transaction | undefined {
  const candidates = [(body as { data?: unknown } | null | undefined)?.data, body];
  return candidates.find((candidate): candidate is Transaction => {
    const { id, externalId, status } = (candidate ?? {}) as Partial<Record<keyof Transaction, unknown>>;
    return [id, externalId, status].every((field) => typeof field === 'string');
  });
}
