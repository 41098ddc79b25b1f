import { parseJson } from '../../lib/text.js';
import { parseHttpUrl } from '../checks.js';
import { TransferClientError } from '../errors.js';
import { requireSuccess, sendWithRetries, type ServiceAccess } from '../request.js';

/**
 * Sends a GET and resolves with the JSON of the response. `url` is http or https, or the path after the `baseUrl` of
 * the definition. Sends up to 3 requests while the service cannot be reached or responds with 5xx or 429. Rejects with
 * a `TransferClientError`; one with status 404 means that the service does not know the transfer.
 */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- As `JSON.parse`: the response has no described shape.
export type Get = (url: string, headers?: Headers) => Promise<any>;

type Headers = Readonly<Record<string, string>>;

/** The requests of one query. */
export interface QueryRequests {
  readonly get: Get;
  /** Whether a response could be used. A later error of the query is not the service's fault. */
  hasResponse: boolean;
}

/** Makes the requests of a query for the transfer with this id, which errors may show. */
export function makeRequests(
  common: Pick<ServiceAccess, 'baseUrl' | 'timeoutMs' | 'fetch'>,
  signal: AbortSignal,
  id: string,
): QueryRequests {
  const requests = { get, hasResponse: false };

  function get(url: string, headers: Headers = {}): Promise<unknown> {
    const response = send(url, headers);
    // A `query` may forget to await it, and an unhandled rejection would end the process.
    response.catch(() => undefined);
    return response;
  }

  async function send(url: string, headers: Headers): Promise<unknown> {
    requireStrings(headers);
    const baseUrl = toUrl(url, common.baseUrl);
    const access = { ...common, baseUrl, headers, secrets: findSecrets(baseUrl, headers, id), isDefined: true };
    const result = await sendWithRetries(access, '', signal);
    signal.throwIfAborted();
    const { status, text } = requireSuccess(result, access, 'UNAVAILABLE', 'The transfer could not be read.');
    const json = parseJson(text);
    if (json === undefined) {
      const message = 'The response is no JSON, or is longer than 1 MiB.';
      throw new TransferClientError('UNREADABLE_RESPONSE', message, { status });
    }
    requests.hasResponse = true;
    return json;
  }

  return requests;
}

function toUrl(path: string, baseUrl: string): string {
  const url = /^https?:\/\//i.test(path) ? path : baseUrl + path;
  // The error of fetch would show the credentials.
  if (parseHttpUrl(url) !== undefined) return url;
  const message =
    'Expected `query` to give `get` an http or https URL without credentials, or a path beside `baseUrl`. Nothing was sent.';
  throw new TransferClientError('INVALID_ARGUMENT', message);
}

/** A variable of the environment that is not set has no value. */
function requireStrings(headers: Headers): void {
  const wrong = Object.keys(headers).find((name) => typeof headers[name] !== 'string');
  if (wrong === undefined) return;
  const message = `Expected \`query\` to give \`get\` headers that are strings, and \`${wrong}\` is ${typeof headers[wrong]}.`;
  throw new TransferClientError('INVALID_ARGUMENT', `${message} Nothing was sent.`);
}

/**
 * Returns what may be a secret: each word of a header, such as the one after `Bearer`, and each value in the query of
 * the URL, as it is and as it is written there. A short word is rarely a secret. The longest is the first, because one
 * may begin with another.
 */
function findSecrets(url: string, headers: Headers, id: string): readonly string[] {
  const { search, searchParams } = new URL(url);
  const written = search
    .slice(1)
    .split('&')
    .map((pair) => pair.slice(pair.indexOf('=') + 1));
  const words = Object.values(headers).flatMap((value) => value.split(/\s/));
  return [...words, ...searchParams.values(), ...written]
    .filter((word) => word.length >= 8 && word !== id && word !== encodeURIComponent(id))
    .sort((one, other) => other.length - one.length);
}
