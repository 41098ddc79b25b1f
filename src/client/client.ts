import { invalidVariable, onlyKnownOptions, requireFunction, wholeNumber } from '../lib/checks.js';
import { requireBaseUrl } from './checks.js';
import { createTransfer, type CreateOptions, type TransferRequest } from './create-transfer.js';
import { findTransaction, getTransaction, type Transaction } from './get-transaction.js';
import { callGlobalFetch } from './request.js';

/** Options of `transferClient`. */
export interface TransferClientOptions {
  /** The address of the service, without the `/transactions` of its paths. */
  baseUrl: string;
  /** From the merchant's dashboard (service §5). */
  apiKey: string;
  /** From the merchant's dashboard (service §5). Sent in a header of each request, and nowhere else. */
  apiSecret: string;
  /**
   * How long one request may take, its response included, in milliseconds.
   * @default 10_000
   */
  timeoutMs?: number | undefined;
  /**
   * Replaces the global `fetch`, for a proxy or for instrumentation. The global one is looked up at each request.
   * @default globalThis.fetch
   */
  fetch?: typeof fetch | undefined;
  /**
   * Finds the transaction in the parsed response to a query, whose shape is not documented (service §4.2).
   * @default looks under `data` and at the top for an object with the documented `id`, `externalId` and `status`
   */
  readTransaction?: ((body: unknown) => Transaction | undefined) | undefined;
}

/**
 * The merchant's requests to the service. Each rejects with a `TransferClientError`, except after an abort of your own
 * `signal`: then with the signal's reason. At most 1 MiB of a response is read.
 *
 * @example
 * const isPaid = async (client: TransferClient, externalId: string): Promise<boolean> =>
 *   (await client.getTransaction(externalId)).status === 'SUCCESS';
 */
export interface TransferClient {
  /**
   * Creates a transfer (service §4.1) and resolves with the service's response. Sends the request once and never
   * retries. Rejects with OUTCOME_UNKNOWN if the service may have acted, and with REFUSED if it has refused the
   * request.
   */
  createTransfer<T = unknown>(request: TransferRequest, options?: CreateOptions<T>): Promise<T>;
  /**
   * Reads a transfer by the service's id or your own (service §4.2): 1 to 255 characters, not `.` or `..`, without
   * slash, backslash, ?, #, % or control characters. Sends up to 3 requests, with jittered backoff, while the service
   * cannot be reached or responds with 5xx or 429.
   */
  getTransaction(idOrExternalId: string, options?: { signal?: AbortSignal | undefined }): Promise<Transaction>;
}

const optionNames = ['baseUrl', 'apiKey', 'apiSecret', 'timeoutMs', 'fetch', 'readTransaction'];

/**
 * Makes a client of the transfer service. Throws INVALID_ARGUMENT.
 *
 * @example
 * const client = transferClient({ baseUrl: 'https://service.example/api', apiKey, apiSecret });
 * const { status } = await client.getTransaction('payout-1');
 */
export function transferClient(options: TransferClientOptions): TransferClient {
  onlyKnownOptions(options, optionNames);
  const { apiKey, apiSecret, timeoutMs = 10_000, fetch = callGlobalFetch, readTransaction = findTransaction } = options;
  const baseUrl = `${requireBaseUrl(options.baseUrl)}/transactions`;
  requireHeaderText('apiKey', apiKey, 'apiKey: process.env.TRANSFER_API_KEY');
  requireHeaderText('apiSecret', apiSecret, 'apiSecret: process.env.TRANSFER_API_SECRET');
  wholeNumber('timeoutMs', timeoutMs, { min: 1, example: 10_000 });
  requireFunction('fetch', fetch, 'globalThis.fetch');
  requireFunction('readTransaction', readTransaction, '(body) => body.data');
  const headers = { 'x-api-key': apiKey, 'x-api-secret': apiSecret, 'Content-Type': 'application/json' };
  const access = { baseUrl, headers, secrets: [apiSecret, apiKey], timeoutMs, fetch };

  return {
    createTransfer: (request, createOptions) => createTransfer(access, request, createOptions),
    getTransaction: (id, queryOptions) => getTransaction(access, readTransaction, id, queryOptions),
  };
}

/** A header cannot carry other characters, and the error of fetch would show the value. */
function requireHeaderText(option: string, value: unknown, example: string): void {
  if (typeof value === 'string' && /^[!-~]+$/.test(value)) return;
  throw invalidVariable(option, 'a string of visible ASCII characters', value, example);
}
