import type { IncomingMessage, IncomingHttpHeaders } from 'node:http';
import type { TransferCallback } from '../core/callback.js';
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

/**
 * Decides whether a request comes from the service. Only `true` accepts; a throw rejects. `callback` is `undefined` for
 * an invalid callback and for an event of `onOther`. `body` has the bytes as they were received, of any body, and is
 * `undefined` if there are none. Set the properties of your own function with `Object.assign(verify, { … })`. A
 * function that wraps a verifier needs the same properties.
 *
 * @example
 * const comesFromTunnel: Verifier = (request) => request.socket.remoteAddress === '127.0.0.1';
 */
export interface Verifier<C = TransferCallback, HostRequest = IncomingMessage> {
  (request: HostRequest, callback: C | undefined, body: Uint8Array | undefined): boolean | Promise<boolean>;
  /**
   * `true` if it reads the last segment of the URL's path. Under `app.use` the router then also handles POST one
   * segment below its mount path; otherwise it leaves such requests to the app.
   * @default false
   */
  readonly readsPath?: boolean | undefined;
  /**
   * `false` if it is synchronous and needs neither the callback nor the body. It is then called before the body is
   * read, so that the body of a refused sender is never read.
   * @default true
   */
  readonly readsCallback?: boolean | undefined;
  /**
   * `true` if it cannot accept a request without the bytes of its body, as a signature. Where the app has parsed the
   * body and left no bytes, it is not called: the sender is refused, and the log has BODY_CONSUMED.
   * @default false
   */
  readonly readsBody?: boolean | undefined;
  /**
   * Returns why it has refused a request, for `refusedBy` of the log line. The sender does not read it, but it must
   * contain no secret and no signature.
   * @default none
   */
  readonly explain?: ((request: HostRequest, body: Uint8Array | undefined) => string) | undefined;
}

/** Returns a verifier with its members. Its `name` in the logs is a property, because bundlers rename functions. */
export function makeVerifier<Verify extends (...parts: never[]) => boolean | Promise<boolean>, Members extends object>(
  name: string,
  accepts: Verify,
  members: Members,
): Verify & Members {
  return Object.defineProperty(Object.assign(accepts, members), 'name', { value: name });
}

/** Returns the header of this name, which is in lower case. Returns `undefined` if there is none or Node has a list. */
export function readHeader({ headers }: SenderRequest, name: string): string | undefined {
  // No header can be mistaken for the method, because Node's headers are strings and lists.
  const value = typeof headers.get === 'function' ? headers.get(name) : (headers as IncomingHttpHeaders)[name];
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
