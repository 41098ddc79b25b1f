import { timingSafeEqual, createHmac } from 'node:crypto';
import { invalidVariable, invalidArgument, invalidSecret, onlyKnownOptions } from '../../lib/checks.js';
import type { CallbackShape } from '../../core/callback.js';
import {
  readHeader,
  toHeaderName,
  toHttpUrl,
  makeVerifier,
  type SenderRequest,
  type SenderVerifier,
} from '../request.js';

/**
 * A secret of at least 16 characters, or a list of several during a rotation, the newest first. The type includes
 * `undefined` so that `process.env.SECRET` compiles, but making a verifier without its first secret throws. A later
 * `undefined` is skipped, so that `[process.env.SECRET, process.env.SECRET_PREVIOUS]` needs no condition.
 */
export type Secret = string | undefined | readonly (string | undefined)[];

export const minSecretLength = 16;

const secretDescription = `a string of at least ${minSecretLength} characters without blanks at its ends`;

/** The advice of an error about a secret that the app chooses. */
export const makeSecret = 'Write the output of `openssl rand -hex 32` into its environment variable.';

/**
 * Returns whether this is long enough not to be guessed. A newline of the file that it came from would refuse every
 * sender.
 */
function isSecret(value: unknown): value is string {
  return typeof value === 'string' && value.length >= minSecretLength && value.trim() === value;
}

/** Returns the secrets as a list, the newest first. Throws INVALID_ARGUMENT. */
export function toSecretList(
  option: string,
  secret: Secret,
  example = 'process.env.CALLBACK_SECRET',
  remedy = makeSecret,
): readonly [string, ...string[]] {
  const [newest, ...older] = (Array.isArray(secret) ? secret : [secret]) as readonly unknown[];
  const list = [newest, ...older.filter((each) => each !== undefined)];
  for (const each of list) {
    if (isSecret(each)) continue;
    throw invalidVariable(option, `${secretDescription}, or several`, each, example, remedy);
  }
  return list as [string, ...string[]];
}

/** Returns a constant-time comparison with every secret. */
function matcherOf(secrets: readonly string[]): (candidate: string) => boolean {
  const expected = secrets.map((secret) => Buffer.from(secret));
  return (candidate) => {
    const bytes = Buffer.from(candidate);
    return expected.reduce((found, secret) => {
      // `timingSafeEqual` throws on unequal lengths. Comparing the secret with itself takes the same time.
      const alike = bytes.length === secret.length;
      return (timingSafeEqual(alike ? bytes : secret, secret) && alike) || found;
    }, false);
  };
}

/**
 * Accepts requests whose last path segment is one of the secrets. Mount the router with
 * `app.post('/callbacks/transfers/:token', router)`, and give the service `https://…/callbacks/transfers/<secret>` as
 * `callbackUrl`. A slash at the end of the path is ignored. Cannot be combined with `transferToken`, which uses the
 * same segment. Called before the body is read. Throws INVALID_ARGUMENT.
 *
 * @example
 * const verify = urlToken(process.env.CALLBACK_SECRET);
 * app.post('/callbacks/transfers/:token', transferCallbackRouter({ ...options, verify }));
 */
export function urlToken(secret: Secret): SenderVerifier {
  const secrets = toSecretList('secret', secret);
  // Other characters would be percent-encoded in the URL and no longer match.
  requireCharacters(secrets, /^[\w.~-]+$/, 'made of letters, digits, `-`, `.`, `_` and `~`');
  const matches = matcherOf(secrets);
  function accepts(request: SenderRequest): boolean {
    return matches(readLastSegment(request));
  }
  return makeVerifier('urlToken', accepts, { readsPath: true, readsCallback: false as const });
}

/**
 * A verifier, with a method that makes the URLs it accepts.
 *
 * @example
 * const toCallbackUrl = (verify: TransferTokenVerifier, externalId: string): string =>
 *   verify.urlFor('https://merchant.example/callbacks/transfers', externalId);
 */
export interface TransferTokenVerifier {
  (request: SenderRequest, callback: Pick<CallbackShape, 'data'> | undefined): boolean;
  readonly readsPath: boolean;
  /** Returns the `callbackUrl` of one transfer: `base`, with the token of `externalId` as its last path segment. */
  urlFor(base: string, externalId: string): string;
}

/**
 * Accepts requests whose last path segment is the transfer's own token, an HMAC of its `externalId`. A leaked URL does
 * not let its reader forge the callback of another transfer. Mount the router with
 * `app.post('/callbacks/transfers/:token', router)`, and give the service `urlFor(base, externalId)` as `callbackUrl`.
 * A slash at the end of the path is ignored. Throws INVALID_ARGUMENT.
 *
 * @example
 * const tokens = transferToken(process.env.CALLBACK_SECRET);
 * const callbackUrl = tokens.urlFor('https://merchant.example/callbacks/transfers', 'payout-1');
 * app.post('/callbacks/transfers/:token', transferCallbackRouter({ ...options, verify: tokens }));
 */
export function transferToken(secret: Secret): TransferTokenVerifier {
  const secrets = toSecretList('secret', secret);
  const [newest] = secrets;
  const tokenOf = (key: string, externalId: string): string =>
    createHmac('sha256', key).update(externalId).digest('base64url');

  function accepts(request: SenderRequest, callback: Pick<CallbackShape, 'data'> | undefined): boolean {
    if (callback === undefined) return false;
    return matcherOf(secrets.map((key) => tokenOf(key, callback.data.externalId)))(readLastSegment(request));
  }
  function urlFor(base: string, externalId: string): string {
    if (typeof externalId !== 'string' || externalId === '') {
      throw invalidArgument('externalId', 'a string of at least one character', externalId);
    }
    const url = toHttpUrl('base', base, "urlFor('https://merchant.example/callbacks', externalId)");
    url.pathname = `${url.pathname.replace(/\/$/, '')}/${tokenOf(newest, externalId)}`;
    return url.href;
  }
  return makeVerifier('transferToken', accepts, { readsPath: true, urlFor });
}

function requireCharacters(secrets: readonly string[], allowed: RegExp, expected: string): void {
  const wrong = secrets.find((each) => !allowed.test(each));
  if (wrong !== undefined) throw invalidVariable('secret', expected, wrong, 'process.env.CALLBACK_SECRET', makeSecret);
}

const headerExample = "headerToken('x-callback-token', secret)";
const basicExample = "basicAuth({ username: 'service', password: process.env.CALLBACK_PASSWORD })";

/**
 * Accepts requests whose header `name` is one of the secrets, in visible ASCII characters. Called before the body is
 * read. Throws INVALID_ARGUMENT.
 *
 * @example
 * const verify = headerToken('x-callback-token', process.env.CALLBACK_SECRET);
 * const router = transferCallbackRouter({ ...options, verify });
 */
export function headerToken(name: string, secret: Secret): SenderVerifier {
  const header = toHeaderName('name', name, headerExample);
  const secrets = toSecretList('secret', secret);
  // Node decodes every header as Latin-1, so other secrets would never match.
  requireCharacters(secrets, /^[ -~]+$/, 'made of ASCII characters');
  const matches = matcherOf(secrets);
  function accepts(request: SenderRequest): boolean {
    const value = readHeader(request, header);
    return value !== undefined && matches(value);
  }
  return makeVerifier('headerToken', accepts, {
    readsCallback: false as const,
    sign: () => ({ [header]: secrets[0] }),
  });
}

/**
 * A user and a password of at least 16 characters. The types include `undefined` so that `process.env.PASSWORD`
 * compiles. It is refused when the verifier is made.
 */
export interface Credentials {
  username: string | undefined;
  password: string | undefined;
}

/**
 * Accepts HTTP Basic authentication, for a `callbackUrl` such as `https://user:password@…`. The service may send such
 * credentials as a header, but does not document it. Takes several pairs during a rotation. Called before the body is
 * read. Throws INVALID_ARGUMENT.
 *
 * @example
 * const verify = basicAuth({ username: 'service', password: process.env.CALLBACK_PASSWORD });
 * const router = transferCallbackRouter({ ...options, verify });
 */
export function basicAuth(credentials: Credentials | readonly [Credentials, ...Credentials[]]): SenderVerifier {
  const list = (Array.isArray(credentials) ? credentials : [credentials]) as readonly Credentials[];
  if (list.length === 0) throw invalidArgument('credentials', 'at least one pair', credentials, basicExample);
  const tokens = list.map(toBasicToken);
  const matches = matcherOf(tokens);
  function accepts(request: SenderRequest): boolean {
    const encoded = /^Basic +([A-Za-z0-9+/]+=*)$/i.exec(readHeader(request, 'authorization') ?? '')?.[1];
    return encoded !== undefined && matches(Buffer.from(encoded, 'base64').toString());
  }
  const sign = () => ({ authorization: `Basic ${Buffer.from(String(tokens[0])).toString('base64')}` });
  return makeVerifier('basicAuth', accepts, { readsCallback: false as const, sign });
}

function toBasicToken(pair: Credentials | null): string {
  if (typeof pair !== 'object' || pair === null) {
    throw invalidSecret('credentials', 'an object or a list of them', pair, basicExample);
  }
  onlyKnownOptions(pair, ['username', 'password']);
  const { username, password } = pair;
  if (typeof username !== 'string' || username === '' || username.includes(':')) {
    throw invalidSecret('username', 'a string of at least one character and without a colon', username, basicExample);
  }
  if (!isSecret(password)) throw invalidVariable('password', secretDescription, password, basicExample, makeSecret);
  return `${username}:${password}`;
}

/** Returns the last segment of the URL's path. One slash at the end of the path is ignored. */
function readLastSegment(request: SenderRequest & { readonly originalUrl?: string }): string {
  const url = String(request.originalUrl ?? request.url);
  // A web request has an absolute URL. Its host is not a segment.
  const path = !url.startsWith('/') && URL.canParse(url) ? new URL(url).pathname : url;
  const segments = path.replace(/\/?(\?.*)?$/s, '');
  return segments.slice(segments.lastIndexOf('/') + 1);
}
