import type { IncomingHttpHeaders } from 'node:http';
import { invalidArgument, invalidSecret } from '../lib/checks.js';

/**
 * The part of a request that the ready-made verifiers read. Requests of `node:http`, of Express and of the web all
 * have it.
 *
 * @example
 * const hasTenant = ({ url }: SenderRequest): boolean => url?.includes('/tenants/') === true;
 */
export interface SenderRequest {
  readonly method?: string | undefined;
  /** A path with its query, or an absolute URL. */
  readonly url?: string | undefined;
  /** By names in lower case, or with the `get` of the web's `Headers`. */
  readonly headers: IncomingHttpHeaders | { get(name: string): string | null };
  /** The sender's address. Express sets it. On a web request the app does. */
  readonly ip?: string | undefined;
  readonly socket?: { readonly remoteAddress?: string | undefined } | undefined;
}

/**
 * A ready-made verifier. It fits the router, the listener and the handler.
 *
 * @example
 * const verify: SenderVerifier[] = [ipAllowList(['203.0.113.7']), urlToken(process.env.CALLBACK_SECRET)];
 */
export interface SenderVerifier {
  (request: SenderRequest): boolean;
  readonly readsPath?: boolean;
  readonly readsCallback: false;
  /** Returns the header that a sender must have, for tests. The secret of a URL has no header. */
  readonly sign?: () => Record<string, string>;
}

/** Returns the header of this name, which is in lower case. Returns `undefined` if there is none or Node has a list. */
export function readHeader({ headers }: SenderRequest, name: string): string | undefined {
  const value = isWebHeaders(headers) ? headers.get(name) : headers[name];
  return typeof value === 'string' ? value : undefined;
}

/** Returns the URL if it is one of HTTP, which has a path. Throws INVALID_ARGUMENT. */
export function toHttpUrl(option: string, value: unknown, example: string): URL {
  const text = String(value);
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === 'https:' || url?.protocol === 'http:') return url;
  throw invalidArgument(option, 'an absolute http or https URL', value, example);
}

/** Headers of one connection, which a proxy drops, and those that Node and hosts of web requests join differently. */
const changedByHosts = /^(?:connection|cookie|host|keep-alive|set-cookie|te|trailer|transfer-encoding|upgrade)$/i;

/** Returns the name in lower case if every host passes on such a header. Throws INVALID_ARGUMENT. */
export function toHeaderName(option: string, name: unknown, example: string): string {
  if (typeof name !== 'string' || !/^[\w!#$%&'*+.^`|~-]+$/.test(name)) {
    throw invalidSecret(option, 'a header name', name, example);
  }
  if (changedByHosts.test(name)) {
    throw invalidSecret(option, 'a header that every host passes on unchanged', name, example);
  }
  return name.toLowerCase();
}

/** No header can be mistaken for the method, because Node's headers are strings and lists. */
function isWebHeaders(headers: SenderRequest['headers']): headers is { get(name: string): string | null } {
  return typeof headers.get === 'function';
}

/** Returns the last segment of the URL's path. One slash at the end of the path is ignored. */
export function readLastSegment(request: SenderRequest & { readonly originalUrl?: string }): string {
  const url = String(request.originalUrl ?? request.url);
  // A web request has an absolute URL. Its host is not a segment.
  const path = !url.startsWith('/') && URL.canParse(url) ? new URL(url).pathname : url;
  const segments = path.replace(/\/?(\?.*)?$/s, '');
  return segments.slice(segments.lastIndexOf('/') + 1);
}
