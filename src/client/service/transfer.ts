import type { CallbackShape, TransferCallback } from '../../core/callback.js';
import { documentedService } from '../../core/documented.js';
import type { Announcement, Ask, PayoutService, Transaction } from '../../core/payout-service.js';
import { invalidArgument, invalidVariable, onlyKnownOptions, requireFunction, wholeNumber } from '../../lib/checks.js';
import { requireSchema, type StandardSchema } from '../../lib/standard-schema.js';
import { requireBaseUrl } from '../checks.js';
import { withAsk } from '../confirm.js';
import { createTransfer, type CreateOptions, type TransferRequest } from '../create-transfer.js';
import { findTransaction, getTransaction } from '../get-transaction.js';
import { seemsFinal } from '../open-status.js';
import { callGlobalFetch } from '../request.js';
import { serviceWithPayload } from './payload.js';

export type { Transaction };

/** The option of `transferService` for a service that is not asked. */
interface ReadOnly<C extends CallbackShape> {
  /**
   * Replaces the schema of a callback, of any library, for when the service changes a field. It must be synchronous,
   * and keep `event`, `data.id` and `data.status`. It may leave out `amount` and `currency`.
   * @default transferCallbackSchema
   */
  payload: StandardSchema<C>;
}

/** Options of `transferService`. */
export interface TransferServiceOptions<C extends CallbackShape = TransferCallback> extends Partial<ReadOnly<C>> {
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

/** The merchant's requests to the service. */
interface Requests {
  /**
   * Creates a transfer (service §4.1) and resolves with the service's response. Sends the request once and never
   * retries. Rejects with OUTCOME_UNKNOWN if the service may have acted, and with REFUSED if it has refused the
   * request.
   */
  createTransfer<T = unknown>(request: TransferRequest, options?: CreateOptions<T>): Promise<T>;
  /**
   * Reads a transfer by the service's id or your own (service §4.2): 1 to 255 characters, not `.` or `..`, without a
   * blank at an end, slash, backslash, ?, #, % or control characters. Sends up to 3 requests, with jittered backoff,
   * while the service cannot be reached or responds with 5xx or 429.
   */
  getTransaction(idOrExternalId: string, options?: { signal?: AbortSignal | undefined }): Promise<Transaction>;
}

/**
 * The documented service, with the merchant's requests to it. Each rejects with a `TransferClientError`, except after
 * an abort of your own `signal`: then with the signal's reason. At most 1 MiB of a response is read.
 *
 * @example
 * const isPaid = async (service: TransferService, externalId: string): Promise<boolean> =>
 *   (await service.getTransaction(externalId)).status === 'SUCCESS';
 */
export interface TransferService<C extends CallbackShape = TransferCallback> extends PayoutService<C>, Requests {}

const keys = ['baseUrl', 'apiKey', 'apiSecret'];
const optionNames = ['payload', ...keys, 'timeoutMs', 'fetch', 'readTransaction'];

/**
 * Makes the documented service. Give it to the receiver as `service`, so that `confirm: true`, reconciliation and
 * `inspectTransfer` ask it. With a `payload` and none of the three keys it is not asked. Throws INVALID_ARGUMENT.
 *
 * @example
 * const service = transferService({ baseUrl: 'https://service.example/api', apiKey, apiSecret });
 * await service.createTransfer({ callbackUrl, externalId: 'payout-1' });
 * app.post('/callbacks/transfers', transferCallbackRouter({ service, confirm: true, store, onSuccess, onFailed }));
 */
export function transferService<C extends CallbackShape = TransferCallback>(
  options: TransferServiceOptions<C>,
): TransferService<C>;
export function transferService<C extends CallbackShape>(options: ReadOnly<C>): PayoutService<C>;
export function transferService<C extends CallbackShape>(
  options: TransferServiceOptions<C> | ReadOnly<C>,
): PayoutService<C> {
  onlyKnownOptions(options, optionNames);
  if ('payload' in options) requireSchema('payload', options.payload, 'payload: transferCallbackSchema');
  const { payload } = options;
  const service = payload ? serviceWithPayload(payload) : (documentedService as unknown as PayoutService<C>);
  // A key without a value must not mean that the service is not asked.
  if (keys.some((name) => name in options)) return toAsked(service, options as TransferServiceOptions<C>);
  if (payload !== undefined) return service;
  const expected = 'given with `apiKey` and `apiSecret`, unless the service is not asked: then leave `service` out';
  throw invalidArgument('baseUrl', expected, undefined, "baseUrl: 'https://service.example/api'");
}

/** The event of each final status: only these two are documented (service §3). */
const events = new Map<unknown, Announcement['event']>([
  ['SUCCESS', 'transfer.success'],
  ['FAILED', 'transfer.failed'],
]);

function toAsked<C extends CallbackShape>(
  service: PayoutService<C>,
  options: TransferServiceOptions<C>,
): TransferService<C> {
  const { access, readTransaction } = resolveOptions(options);
  const requests: Requests = {
    createTransfer: (request, createOptions) => createTransfer(access, request, createOptions),
    getTransaction: (id, queryOptions) => getTransaction(access, readTransaction, id, queryOptions),
  };
  return { ...withAsk(service, toAsk(requests)), seemsFinal, ...requests };
}

/** Returns how the documented service is asked. */
export function toAsk({ getTransaction }: Pick<Requests, 'getTransaction'>): Ask {
  return async function ask(id, signal) {
    const transaction = await getTransaction(id, { signal });
    const event = events.get(transaction.status);
    return { transaction, announcement: event && { event, callback: { event, data: transaction } } };
  };
}

function resolveOptions(options: Omit<TransferServiceOptions, 'payload'>) {
  const { apiKey, apiSecret, timeoutMs = 10_000, fetch = callGlobalFetch, readTransaction = findTransaction } = options;
  const baseUrl = `${requireBaseUrl(options.baseUrl)}/transactions`;
  requireHeaderText('apiKey', apiKey, 'apiKey: process.env.TRANSFER_API_KEY');
  requireHeaderText('apiSecret', apiSecret, 'apiSecret: process.env.TRANSFER_API_SECRET');
  wholeNumber('timeoutMs', timeoutMs, { min: 1, example: 10_000 });
  requireFunction('fetch', fetch, 'globalThis.fetch');
  requireFunction('readTransaction', readTransaction, '(body) => body.data');
  const headers = { 'x-api-key': apiKey, 'x-api-secret': apiSecret, 'Content-Type': 'application/json' };
  return { access: { baseUrl, headers, secrets: [apiSecret, apiKey], timeoutMs, fetch }, readTransaction };
}

/** A header cannot carry other characters, and the error of fetch would show the value. */
function requireHeaderText(option: string, value: unknown, example: string): void {
  if (typeof value === 'string' && /^[!-~]+$/.test(value)) return;
  throw invalidVariable(option, 'a string of visible ASCII characters', value, example);
}
