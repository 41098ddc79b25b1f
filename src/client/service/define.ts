import { isCallbackId } from '../../core/callback.js';
import type { PayoutService, StateMeaning } from '../../core/payout-service.js';
import { requireVerifiers } from '../../core/verify.js';
import { invalidArgument, maxTimerMs, onlyKnownOptions, requireFunction, wholeNumber } from '../../lib/checks.js';
import { deadlineSignal, withDeadline } from '../../lib/deadline.js';
import { requireSchema, type StandardSchema } from '../../lib/standard-schema.js';
import { messageOf } from '../../lib/text.js';
import { readQueried } from '../ask.js';
import { requireBaseUrl } from '../checks.js';
import { withAsk } from '../confirm.js';
import { isClientError, TransferClientError } from '../errors.js';
import { callGlobalFetch, toPathSegment } from '../request.js';
import { makeRequests, type Get, type QueryRequests } from './get.js';
import { readPayload, type IgnoredEvent, type ReadTransfer } from './read.js';

/** A verifier of any host, such as `hmacSignature`, `urlToken` or a function of your own. */
type AnyVerifier = (request: never, callback: never, body: Uint8Array | undefined) => boolean | Promise<boolean>;

type States = Readonly<Record<string, StateMeaning>>;
type Options = ServiceOptions<unknown, ReadTransfer, States>;

/**
 * Options of `defineService`. `P` is the payload, `R` the result of `read`, and `S` the states.
 *
 * @example
 * type Read = ServiceOptions<{ id: number; word: string }, { state: string; id: number }, { paid: 'SUCCESS' }>['read'];
 * const read: Read = ({ id, word }) => ({ state: word, id });
 */
export interface ServiceOptions<P, R extends ReadTransfer | IgnoredEvent, S extends States> {
  /**
   * The schema of the payload, of any library. It types the argument of `read`. A payload that does not fit is
   * `invalid`, so the schema must also accept the events that `read` ignores.
   * @default none: the argument of `read` is `any`
   */
  payload?: StandardSchema<P>;
  /**
   * Reads a callback, and the result of `query`. Returns the transfer, with any other field that the handlers need, or
   * `{ ignored: name }` for an event that is none of your transfers. Such an event is acknowledged, and no handler
   * runs.
   */
  read: (payload: P) => R;
  /** The meaning of each state. A callback with another state is `invalid`. */
  states: S;
  /**
   * Decides whether a sender is trusted: the `verify` of the router, the listener and the handler.
   * @default none: every sender is trusted
   */
  verify?: AnyVerifier | readonly AnyVerifier[];
  /**
   * Asks the service for a transfer, and resolves with it in the shape of a callback, or with `undefined` if the
   * service does not know it.
   * @default none: the service cannot be asked, neither by reconciliation nor by `confirm: true`
   */
  query?: ((id: string, get: Get) => unknown) | undefined;
  /**
   * The start of each URL: `get` adds its path to it. Read it from the environment, so that a test can replace the
   * service.
   * @default none: `get` takes whole URLs
   */
  baseUrl?: string | undefined;
  /**
   * How long one request of `get` may take, its response included, in milliseconds.
   * @default 10_000
   */
  timeoutMs?: number | undefined;
  /**
   * Replaces the global `fetch`, for a proxy or for instrumentation.
   * @default globalThis.fetch
   */
  fetch?: typeof fetch | undefined;
}

type IsAny<T> = 0 extends 1 & T ? true : false;
/** A value that `read` returns under this key, where there is one. `any` becomes `Else`. */
type Value<R, K extends string, Else> = K extends keyof R
  ? IsAny<R[K]> extends true
    ? Else
    : Exclude<R[K], null | undefined>
  : never;
/** `undefined` if `read` may leave out this key. */
type Missing<R, K extends string> = K extends keyof R
  ? Partial<Pick<R, K>> extends Pick<R, K>
    ? undefined
    : never
  : undefined;

/** Amount or currency. A success without one that `read` names is refused. Any other callback may lack it. */
type Fact<R, K extends string, Else, M extends StateMeaning> =
  Value<R, K, Else> | ('SUCCESS' extends M ? Missing<R, K> : undefined);

/** What `read` returns and the handlers do not get as it is. */
type ReadKey = 'state' | 'id' | 'externalId' | 'amount' | 'currency' | 'status' | 'ignored';

/** The data that the handlers get: ids as strings, amount and currency, and the other fields that `read` returns. */
type ServiceData<R, M extends StateMeaning> = R extends ReadTransfer
  ? Omit<R, ReadKey> & {
      id: string;
      externalId: string;
      status: M;
      amount: Fact<R, 'amount', number | string, M>;
      currency: Fact<R, 'currency', string, M>;
    }
  : never;

/** The states with this meaning. A key of an object may be a number. */
type StateOf<S extends States, M> = {
  [K in keyof S & (string | number)]: M extends S[K] ? `${K}` : never;
}[keyof S & (string | number)];

/**
 * The callbacks of a service, as its handlers get them. `R` is the result of `read`, and `S` the states.
 *
 * @example
 * type Callback = ServiceEvent<{ state: string; id: number; fee: number }, { paid: 'SUCCESS'; bounced: 'FAILED' }>;
 * const toFee = ({ data }: Callback): number => data.fee;
 */
export type ServiceEvent<R, S extends States> =
  | { event: 'transfer.success'; data: ServiceData<R, 'SUCCESS'> }
  | ('FAILED' extends S[keyof S] ? { event: 'transfer.failed'; data: ServiceData<R, 'FAILED'> } : never)
  | ('REVERSED' extends S[keyof S] ? { event: 'transfer.reversed'; data: ServiceData<R, 'REVERSED'> } : never)
  | ('OTHER' extends S[keyof S]
      ? {
          event: 'other';
          type: StateOf<S, 'OTHER'>;
          data: Omit<ServiceData<R, 'OTHER'>, 'externalId' | 'status'> & { externalId?: string };
        }
      : never);

const readExample =
  '({ event, data }) => ({ state: event, id: data.id, externalId: data.reference, amount: data.amount, currency: data.currency })';
const optionNames = ['payload', 'read', 'states', 'verify', 'query', 'baseUrl', 'timeoutMs', 'fetch'];
const meanings: readonly StateMeaning[] = ['SUCCESS', 'FAILED', 'REVERSED', 'PENDING', 'OTHER'];

/**
 * Defines a payout service other than the documented one. Give it to the receiver as `service`. `read` then reads
 * callbacks and queries, the router calls `verify`, and reconciliation, `inspectTransfer` and `confirm: true` call
 * `query`. Throws INVALID_ARGUMENT.
 *
 * @example
 * const service = defineService({
 *   read: ({ event, data }) => ({ state: event, id: data.id, externalId: data.reference, amount: data.amount }),
 *   states: { 'payout.paid': 'SUCCESS', 'payout.bounced': 'FAILED' },
 *   verify: hmacSignature({ header: 'x-signature', secrets: process.env.CALLBACK_SECRET }),
 *   query: (id, get) => get(`https://service.example/payouts/${id}`, { authorization: `Bearer ${apiKey}` }),
 * });
 */
export function defineService<
  const S extends States,
  R extends ReadTransfer | IgnoredEvent,
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- As `JSON.parse`: without a schema it has no described shape.
  P = any,
>(options: ServiceOptions<P, R, S>): PayoutService<ServiceEvent<R, S>> {
  checkOptions(options);
  const { payload, verify } = options;
  // Bound: if the options are an instance of a class, they need its `this`.
  const read = options.read.bind(options) as (given: unknown) => unknown;
  const query = options.query?.bind(options);
  const states: States = { ...options.states };
  const definition = { payload, read, states };
  const service: PayoutService = {
    readCallback: (given) => readPayload(given, definition),
    meanings: new Set(Object.values(states)),
    ...('verify' in options && { verify }),
  };
  const queryCallback = query && makeQuery(options, query);
  const whole =
    queryCallback === undefined
      ? service
      : withAsk(service, async (id, signal) => readQueried(service, id, await queryCallback(id, signal)));
  return whole as PayoutService<ServiceEvent<R, S>>;
}

function checkOptions<P, R extends ReadTransfer | IgnoredEvent, S extends States>(
  options: ServiceOptions<P, R, S>,
): void {
  onlyKnownOptions(options, optionNames);
  const { payload, read, states, query, baseUrl, timeoutMs, fetch } = options;
  // A schema that a circular import has not made yet must not mean that every payload fits.
  if ('payload' in options) requireSchema('payload', payload);
  requireFunction('read', read, readExample);
  requireStates(states);
  // A `verify` without a value must not mean that every sender is trusted.
  if ('verify' in options) requireVerifiers(options.verify);
  if (query !== undefined) requireFunction('query', query, '(id, get) => get(`https://service.example/payouts/${id}`)');
  if (baseUrl !== undefined) requireBaseUrl(baseUrl);
  if (timeoutMs !== undefined) wholeNumber('timeoutMs', timeoutMs, { min: 1, example: 10_000 });
  if (fetch !== undefined) requireFunction('fetch', fetch, 'globalThis.fetch');
}

function requireStates(states: unknown): void {
  const example = "states: { 'payout.paid': 'SUCCESS', 'payout.bounced': 'FAILED' }";
  if (typeof states !== 'object' || states === null || Array.isArray(states)) {
    throw invalidArgument('states', 'an object', states, example);
  }
  for (const [state, meaning] of Object.entries(states)) {
    // A state becomes a field of log lines, and of the keys of events for `onOther`.
    if (!isCallbackId(state)) throw invalidArgument('states', 'an object whose keys are printable', states, example);
    if (meanings.includes(meaning as StateMeaning)) continue;
    throw invalidArgument(`states['${state}']`, `one of ${meanings.join(', ')}`, meaning);
  }
  // A failure that may follow a success is named REVERSED, and may be all that a service sends of failures.
  for (const statuses of [['SUCCESS'], ['FAILED', 'REVERSED']]) {
    if (Object.values(states).some((meaning) => statuses.includes(meaning as string))) continue;
    throw invalidArgument('states', `an object with a state that is ${statuses.join(' or ')}`, states, example);
  }
}

/** Returns the function that asks the service, and resolves with what the service would send as a callback. */
function makeQuery(
  { baseUrl, timeoutMs = 10_000, fetch = callGlobalFetch }: Pick<Options, 'baseUrl' | 'timeoutMs' | 'fetch'>,
  query: NonNullable<Options['query']>,
): (id: string, signal: AbortSignal) => Promise<unknown> {
  const common = { baseUrl: baseUrl === undefined ? '' : requireBaseUrl(baseUrl), timeoutMs, fetch };
  return async function queryCallback(id, signal) {
    toPathSegment(id); // Throws for an id that would lead to another path.
    signal.throwIfAborted();
    // A `query` that uses its own `fetch` has no signal, and may never finish.
    return withDeadline(deadlineSignal(maxTimerMs, signal), async (deadline) => {
      const requests = makeRequests(common, deadline, id);
      const found = await callQuery(() => query(id, requests.get), requests);
      if (found === undefined) throw notKnown(requests);
      return found;
    });
  };
}

/** A service may respond to an unknown transfer with 200 and nothing. But a `query` may also lack its `return`. */
function notKnown({ hasResponse }: QueryRequests): TransferClientError {
  const message = hasResponse
    ? '`query` resolved with undefined after a 2xx: does it return? If so, the service does not know the transfer.'
    : 'The service does not know the transfer.';
  return new TransferClientError('REFUSED', message, { status: 404, authenticationFaults: [] });
}

/**
 * Rejects with a `TransferClientError`. An error of `query` after a response does not mean that the service is down.
 */
async function callQuery(call: () => unknown, requests: QueryRequests): Promise<unknown> {
  try {
    const payload = await call();
    requireAwaited(payload);
    return payload;
  } catch (cause) {
    if (isClientError(cause)) throw cause;
    const code = requests.hasResponse ? 'UNREADABLE_RESPONSE' : 'UNAVAILABLE';
    throw new TransferClientError(code, `\`query\` threw: ${messageOf(cause)}`, { cause });
  }
}

/**
 * Throws UNREADABLE_RESPONSE if there is a promise in the payload, such as the promise of a `get` without `await`.
 */
function requireAwaited(payload: unknown): void {
  const values = new Set([payload]);
  // A Set that grows during its iteration replaces recursion, so deep nesting and cycles are safe.
  for (const value of values) {
    if (typeof value !== 'object' || value === null) continue;
    for (const child of Object.values(value) as unknown[]) values.add(child);
  }
  const promises = [...values].filter((value) => value instanceof Promise);
  if (promises.length === 0) return;
  // Nothing else awaits them: an unhandled rejection would end the process.
  for (const promise of promises) promise.catch(() => undefined);
  const message = 'Expected `query` to resolve with a transfer, got a promise in it. Write `await get(url)`.';
  throw new TransferClientError('UNREADABLE_RESPONSE', message);
}
