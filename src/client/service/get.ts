import { parseJson } from '../../lib/text.js';
import { TransferClientError } from '../errors.js';
import { requireSuccess, sendWithRetries, type ServiceAccess } from '../request.js';

/**
 * Sends a GET and resolves with the JSON of the response. `url` is http or https, or the path after the `baseUrl` of
 * the definition. Sends up to 3 requests while the service cannot be reached or responds with 5xx or 429. Rejects with
 * a `TransferClientError`; one with status 404 means that the service does not know the transfer.
 */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- As `JSON.parse`: the response has no described shape.
export type Get = (url: string, headers?: Readonly<Record<string, string>>) => Promise<any>;

/** The requests of one query. */
export class QueryRequests {
  readonly #common: Pick<ServiceAccess, 'timeoutMs' | 'fetch'>;
  readonly #baseUrl: string;
  readonly #signal: AbortSignal;
  /** Whether a response could be used. A later error of the query is no fault of the service. */
  hasResponse = false;

  constructor(common: Pick<ServiceAccess, 'timeoutMs' | 'fetch'>, baseUrl: string, signal: AbortSignal) {
    this.#common = common;
    this.#baseUrl = baseUrl;
    this.#signal = signal;
  }

  readonly get: Get = (url, headers = {}) => {
    const response = this.#send(url, headers);
    // A `query` may forget to await it, and an unhandled rejection would end the process.
    response.catch(() => undefined);
    return response;
  };

  async #send(url: string, headers: Readonly<Record<string, string>>): Promise<unknown> {
    requireStrings(headers);
    const own = { baseUrl: this.#toUrl(url), headers, secrets: findSecrets(headers), isDefined: true };
    const access = { ...this.#common, ...own };
    const result = await sendWithRetries(access, '', this.#signal);
    this.#signal.throwIfAborted();
    const { status, text } = requireSuccess(result, access, 'UNAVAILABLE', 'The transfer could not be read.');
    const json = text === undefined ? undefined : parseJson(text);
    if (json === undefined) {
      const message = 'The response is no JSON, or is longer than 1 MiB.';
      throw new TransferClientError('UNREADABLE_RESPONSE', message, { status });
    }
    this.hasResponse = true;
    return json;
  }

  #toUrl(path: string): string {
    const url = /^https?:\/\//i.test(path) ? path : this.#baseUrl + path;
    const { username, password } = URL.canParse(url) ? new URL(url) : { username: 'none', password: '' };
    // The error of fetch would show the credentials.
    if (/^https?:\/\//i.test(url) && username + password === '') return url;
    const message =
      'Expected `query` to give `get` an http or https URL without credentials, or a path beside `baseUrl`. Nothing was sent.';
    throw new TransferClientError('INVALID_ARGUMENT', message);
  }
}

/** A variable of the environment that is not set has no value. */
function requireStrings(headers: Readonly<Record<string, string>>): void {
  const wrong = Object.keys(headers).find((name) => typeof headers[name] !== 'string');
  if (wrong === undefined) return;
  const message = `Expected \`query\` to give \`get\` headers that are strings, and \`${wrong}\` is ${typeof headers[wrong]}.`;
  throw new TransferClientError('INVALID_ARGUMENT', `${message} Nothing was sent.`);
}

/** Each word of a header, such as that after `Bearer`, may be a secret. A short word is rarely a secret. */
function findSecrets(headers: Readonly<Record<string, string>>): readonly string[] {
  return Object.values(headers).flatMap((value) => value.split(' ').filter((word) => word.length >= 8));
}
