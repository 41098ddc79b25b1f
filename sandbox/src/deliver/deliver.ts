import { attemptsPerCallback } from '../../../src/core/service.js';
import type { PayoutService } from '../../../src/core/payout-service.js';
import { hasMethods, invalidArgument, onlyKnownOptions, requireBoolean, wholeNumber } from '../../../src/lib/checks.js';
import {
  attemptCallback,
  isAcknowledgement,
  toContentType,
  type AttemptResponse,
  type AttemptOptions,
} from '../attempt/attempt.js';
import { requireAttemptHeaders, type AttemptHeaders } from '../attempt/headers.js';
import { addSignature, Signer } from '../attempt/signer.js';
import { toNameHeaders } from '../services/fresh.js';
import { loadByName, type Definition } from '../services/load-by-name.js';
import type { ServiceName } from '../services/named-services.js';
import { openTarget, type DeliverTarget } from './target.js';

/** Only these members: the type of what a query finds differs between the two packages. */
type SigningService = Pick<PayoutService, 'readCallback' | 'verify'>;

/** A service that is given, or a definition of this package. */
interface Signing extends Partial<Omit<Definition, 'service'>> {
  readonly service: SigningService;
}

/** Options of `deliver`. */
export interface DeliverOptions {
  /**
   * The path of the callback endpoint in the app, with its token if it has one. The default for a URL is its own path.
   * @default '/'
   */
  path?: string | undefined;
  /**
   * Sent with each attempt, for an endpoint that checks a token or a password: `{ 'X-Token': '…' }`. A function makes
   * them from the bytes of the body, for a signature. Host, Connection, Content-Type, Content-Length and
   * Transfer-Encoding are refused: the delivery sets them as the service does.
   * @default none
   */
  headers?: AttemptHeaders | undefined;
  /**
   * Another service, made by `defineService`: its verifier signs each attempt, if it can. `headers` of the same name
   * replace a signature. The name of a service stands for its definition in this package, which signs with the
   * environment variable CALLBACK_SECRET, as `transfer-sandbox check` does.
   * @default the documented service, which signs nothing
   */
  service?: SigningService | ServiceName | undefined;
  /**
   * How often the callback is delivered; the service may do so more than once (service §6.2).
   * @default 1
   */
  copies?: number | undefined;
  /**
   * Whether the copies are delivered concurrently, or one after the other.
   * @default false
   */
  concurrent?: boolean | undefined;
  /**
   * Whether a copy that is not acknowledged is sent again, up to 4 attempts in total (service §6.3). It is sent
   * immediately, because tests do not wait 30 s.
   * @default true
   */
  retry?: boolean | undefined;
  /**
   * How long one attempt waits for the whole response, in milliseconds. An app that never responds takes four times as
   * long: set it below the timeout of your test runner.
   * @default 10_000
   */
  attemptTimeoutMs?: number | undefined;
}

const withDefaults = ({ path = '', headers = {}, service, copies = 1, ...rest }: DeliverOptions) => {
  const { concurrent = false, retry = true, attemptTimeoutMs = 10_000 } = rest;
  return { path, headers, service, copies, concurrent, retry, attemptTimeoutMs };
};

/**
 * Delivers a callback as the service does (service §6): a POST of the same bytes, repeated until the response is a 2xx
 * or the fourth attempt has failed. `target` is an Express app, any other request listener, a server of `node:http` or
 * `node:https`, or a URL. A server need not listen: it is then reached through a port of 127.0.0.1 that is open during
 * the delivery. The certificate of a URL is checked, but the certificate of a server is not. A `callback` that is a
 * string is sent unchanged, a `URLSearchParams` as a form, anything else as JSON.
 *
 * Resolves with whether each copy was acknowledged with a 2xx, at its first attempt or a later one, and with the status
 * of the response to each attempt, copy by copy, or why there was none. Rejects with INVALID_ARGUMENT only.
 *
 * @example
 * const { acknowledged } = await deliver(app, transferSucceeded(), { path: '/callbacks/transfers', copies: 5 });
 * const service = defineService({
 *   read: ({ state, id }) => ({ state, id, externalId: id }),
 *   states: { paid: 'SUCCESS', bounced: 'FAILED' },
 *   verify: hmacSignature({ header: 'x-signature', secrets: process.env.CALLBACK_SECRET }),
 * });
 * await deliver(app, { state: 'paid', id: 'payout-1' }, { service });
 */
export async function deliver(
  target: DeliverTarget,
  callback: unknown,
  options: DeliverOptions = {},
): Promise<{ acknowledged: boolean; responses: (number | string)[] }> {
  onlyKnownOptions(options, Object.keys(withDefaults({})));
  const {
    path,
    headers: given,
    service,
    copies,
    concurrent,
    retry,
    attemptTimeoutMs: timeoutMs,
  } = withDefaults(options);
  requireAttemptHeaders(given, 'headers');
  wholeNumber('copies', copies, { min: 1, example: 2 });
  wholeNumber('attemptTimeoutMs', timeoutMs, { min: 1, example: 10_000 });
  requireBoolean('concurrent', concurrent);
  requireBoolean('retry', retry);
  const opened = await openTarget(target);
  try {
    const url = urlAt(path, opened.baseUrl);
    const definition: Signing | undefined =
      typeof service === 'string' ? await loadByName(service, url) : service && { service };
    const isForm = definition?.byName?.named.isForm === true && typeof callback === 'object';
    const payload = isForm ? new URLSearchParams(callback as Record<string, string>) : callback;
    const body = renderBody(payload);
    const headers = definition === undefined ? given : signAs(definition, body, given);
    const contentType = toContentType(payload instanceof URLSearchParams);
    const attempt = { contentType, headers, timeoutMs, anyCertificate: opened.anyCertificate };
    const send = (): Promise<AttemptResponse[]> => deliverOnce(url, body, attempt, retry);
    const delivered: AttemptResponse[][] = [];
    if (concurrent) delivered.push(...(await Promise.all(Array.from({ length: copies }, send))));
    else while (delivered.length < copies) delivered.push(await send());
    return {
      acknowledged: delivered.every((responses) => responses.some(isAcknowledgement)),
      responses: delivered.flat().map((response) => ('status' in response ? response.status : response.error)),
    };
  } finally {
    await opened.close();
  }
}

async function deliverOnce(
  url: string,
  body: string,
  options: AttemptOptions,
  retry: boolean,
): Promise<AttemptResponse[]> {
  const responses: AttemptResponse[] = [];
  for (let attempt = 0; attempt < (retry ? attemptsPerCallback : 1); attempt += 1) {
    const response = await attemptCallback(url, body, options);
    responses.push(response);
    if (isAcknowledgement(response)) break;
  }
  return responses;
}

/** Returns the headers with the signature of the service. Throws INVALID_ARGUMENT if nothing can make it. */
function signAs({ service, signWith, byName }: Signing, body: string, given: AttemptHeaders): AttemptHeaders {
  if (!hasMethods(service, 'readCallback')) {
    throw invalidArgument('service', 'made by `defineService`', service, 'service: defineService({ read, states })');
  }
  const signer = new Signer(service.verify, body, signWith);
  if (signer.isMissing(given)) {
    const expected = 'one whose verifier can sign this callback, or `headers` beside it to be a function that signs';
    throw invalidArgument('service', expected, service, "headers: (body) => ({ 'x-signature': sign(body) })");
  }
  const names = { event: [], transfer: [], ...byName?.named.names };
  return addSignature(given, (bytes) => ({ ...toNameHeaders(names, body, ''), ...signer.sign(bytes) }));
}

function renderBody(callback: unknown): string {
  if (typeof callback === 'string') return callback;
  if (callback instanceof URLSearchParams) return callback.toString();
  let text: string | undefined;
  try {
    text = JSON.stringify(callback);
  } catch {
    // The value refers to itself, or contains a bigint.
  }
  if (text === undefined) throw invalidArgument('callback', 'a string or a JSON value', callback);
  return text;
}

/** Refuses a path that leads to another origin, as `//example.com` and a whole URL do. */
function urlAt(path: unknown, base: string): string {
  const url = typeof path === 'string' && URL.canParse(path, base) ? new URL(path, base) : undefined;
  if (url?.origin !== new URL(base).origin)
    throw invalidArgument('path', 'a path of the target', path, "path: '/callbacks/transfers'");
  return url.href;
}
