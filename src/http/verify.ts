import { createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { BlockList, isIP, isIPv6 } from 'node:net';
import type { CallbackShape, TransferCallback } from '../core/callback.js';
import { invalidOption, invalidSecret, onlyKnownOptions, TransferCallbackError } from '../core/errors.js';

/**
 * Says whether a request comes from the service; nothing but `true` is a yes. It is asked about invalid callbacks
 * too, then without one, and a throw is a no.
 */
export type Verifier<C = TransferCallback, Request = IncomingMessage> = (
  request: Request,
  callback: C | undefined,
) => boolean | Promise<boolean>;

/** A secret, or several while one is being replaced by another: the first is the new one. */
export type Secret = string | readonly string[];

const leastSecretLength = 16;

/**
 * The last segment of the URL's path must be one of the secrets (so it goes with `transferToken` in no list): give the service
 * `https://…/callbacks/transfers/<secret>` as `callbackUrl`. Throws INVALID_OPTION.
 */
export function urlToken(secret: Secret): Verifier<unknown> {
  const secrets = secretList('secret', secret);
  for (const each of secrets) {
    // Anything else would be percent-encoded on its way, and then be no secret of ours any more.
    if (!/^[\w.~-]+$/.test(each)) throw invalidSecret('secret', 'made of letters, digits, `-`, `.`, `_` and `~`', each);
  }
  const matches = matcherOf(secrets);
  return function verifyUrlToken(request) {
    return matches(lastPathSegment(request));
  };
}

/** A verifier, and the address that satisfies it. */
export interface TransferTokenVerifier {
  (request: IncomingMessage, callback: Pick<CallbackShape, 'data'> | undefined): boolean;
  /** The `callbackUrl` for one transfer: `base` with the token of `externalId` as its last path segment. */
  urlFor(base: string, externalId: string): string;
}

/**
 * The last segment of the URL's path must be this transfer's own token, an HMAC of its `externalId`: an address that
 * leaks forges no other transfer. Give the service `urlFor(base, externalId)` as `callbackUrl`. Throws INVALID_OPTION.
 */
export function transferToken(secret: Secret): TransferTokenVerifier {
  const secrets = secretList('secret', secret);
  const [newest] = secrets;
  const tokenOf = (key: string, externalId: string): string =>
    createHmac('sha256', key).update(externalId).digest('base64url');

  function verifyTransferToken(request: IncomingMessage, callback: Pick<CallbackShape, 'data'> | undefined): boolean {
    if (callback === undefined) return false;
    return matcherOf(secrets.map((key) => tokenOf(key, callback.data.externalId)))(lastPathSegment(request));
  }
  return Object.assign(verifyTransferToken, {
    urlFor(base: string, externalId: string): string {
      if (typeof externalId !== 'string' || externalId === '') {
        throw invalidOption('externalId', 'a string of at least one character', externalId);
      }
      const url = URL.canParse(base) ? new URL(base) : undefined;
      // An address of another kind may have no path to put the token into.
      if (url?.protocol !== 'https:' && url?.protocol !== 'http:') {
        throw invalidOption('base', 'an absolute http or https URL', base);
      }
      url.pathname = `${url.pathname.replace(/\/$/, '')}/${tokenOf(newest, externalId)}`;
      return url.href;
    },
  });
}

/** The header `name` must be one of the secrets. Throws INVALID_OPTION. */
export function headerToken(name: string, secret: Secret): Verifier<unknown> {
  if (typeof name !== 'string' || !/^[\w!#$%&'*+.^`|~-]+$/.test(name))
    throw invalidSecret('name', 'a header name', name);
  const header = name.toLowerCase();
  const matches = matcherOf(secretList('secret', secret));
  return function verifyHeaderToken(request) {
    const value = request.headers[header];
    return typeof value === 'string' && matches(value);
  };
}

export interface Credentials {
  username: string;
  password: string;
}

/**
 * HTTP Basic authentication, for a `callbackUrl` such as `https://user:password@…`, where the service turns it into
 * a header; it does not document that it does. Throws INVALID_OPTION.
 */
export function basicAuth(credentials: Credentials | readonly [Credentials, ...Credentials[]]): Verifier<unknown> {
  const list = Array.isArray(credentials) ? (credentials as readonly Credentials[]) : [credentials as Credentials];
  if (list.length === 0) throw invalidOption('credentials', 'at least one pair', credentials);
  const matches = matcherOf(
    list.map((pair) => {
      if (typeof pair !== 'object') throw invalidSecret('credentials', 'an object or a list of them', pair);
      onlyKnownOptions(pair, ['username', 'password']);
      const { username, password } = pair;
      if (typeof username !== 'string' || username === '' || username.includes(':')) {
        throw invalidSecret('username', 'a string of at least one character and without a colon', username);
      }
      if (typeof password !== 'string' || password === '') {
        throw invalidSecret('password', 'a string of at least one character', password);
      }
      return `${username}:${password}`;
    }),
  );
  return function verifyBasicAuth(request) {
    const encoded = /^Basic +([A-Za-z0-9+/]+=*)$/i.exec(request.headers.authorization ?? '')?.[1];
    return encoded !== undefined && matches(Buffer.from(encoded, 'base64').toString());
  };
}

/**
 * The sender's address must be on the list: addresses and CIDR ranges, IPv4 and IPv6. In Express the address is
 * `request.ip`, which follows the app's `trust proxy` setting; elsewhere it is the peer of the socket. With
 * `trust proxy: true` anyone may claim any address, so then nobody is let in. Throws INVALID_OPTION.
 */
export function ipAllowList(addresses: readonly string[]): Verifier<unknown> {
  if (!Array.isArray(addresses) || addresses.length === 0) {
    throw invalidOption('addresses', 'a list of at least one address or range', addresses);
  }
  const list = new BlockList();
  for (const entry of addresses) allow(list, entry);

  return function verifyIpAddress(request: IncomingMessage & { ip?: string; app?: { get(setting: string): unknown } }) {
    if (request.app?.get('trust proxy') === true) {
      throw new TransferCallbackError(
        'INVALID_OPTION',
        'ipAllowList needs `trust proxy` to name your proxies: with `true` a sender may claim any address.',
      );
    }
    // An IPv4 peer of a dual-stack socket is shown as `::ffff:203.0.113.7`: as IPv6 it meets the IPv4 rules too.
    const address = request.ip ?? request.socket.remoteAddress ?? '';
    return isIP(address) !== 0 && list.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
  };
}

function allow(list: BlockList, entry: unknown): void {
  const [address = '', prefix, ...rest] = typeof entry === 'string' ? entry.split('/') : [];
  const bits = isIPv6(address) ? 128 : 32;
  const length = prefix === undefined ? bits : /^\d{1,3}$/.test(prefix) ? Number(prefix) : NaN;
  if (isIP(address) === 0 || !(length <= bits) || rest.length > 0) {
    throw invalidOption('addresses', 'a list of IP addresses and CIDR ranges', entry);
  }
  list.addSubnet(address, length, bits === 128 ? 'ipv6' : 'ipv4');
}

function lastPathSegment(request: IncomingMessage & { originalUrl?: string }): string {
  const [path = ''] = (request.originalUrl ?? request.url ?? '').split('?');
  return path.slice(path.lastIndexOf('/') + 1);
}

function secretList(option: string, secret: Secret): readonly [string, ...string[]] {
  const list: readonly unknown[] = Array.isArray(secret) ? secret : [secret];
  for (const item of list.length === 0 ? [undefined] : list) {
    if (typeof item === 'string' && item.length >= leastSecretLength) continue;
    throw invalidSecret(option, `a string of at least ${leastSecretLength} characters, or several`, item);
  }
  return list as readonly [string, ...string[]];
}

/** Compares with all of them, each in a time that does not tell how far they agree. */
function matcherOf(secrets: readonly string[]): (candidate: string) => boolean {
  const wanted = secrets.map((secret) => Buffer.from(secret));
  return (candidate) => {
    const bytes = Buffer.from(candidate);
    return wanted.reduce((found, secret) => {
      // `timingSafeEqual` throws on unequal lengths: then the secret is compared with itself, for the time it takes.
      const alike = bytes.length === secret.length;
      return (timingSafeEqual(alike ? bytes : secret, secret) && alike) || found;
    }, false);
  };
}
