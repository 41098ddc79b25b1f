import { createHmac, timingSafeEqual } from 'node:crypto';
import {
  correctVariable,
  invalidArgument,
  invalidSecret,
  invalidVariable,
  onlyKnownOptions,
  wholeNumber,
} from '../../lib/checks.js';
import { TransferCallbackError } from '../../lib/errors.js';
import { readHeader, toHeaderName, type SenderRequest } from '../request.js';
import { minSecretLength, toSecretList, type Secret } from './secrets.js';

/** Returns the secrets for a request, such as those of its tenant, or `undefined` if there are none. */
type FindSecrets<HostRequest> = (request: HostRequest) => Secret | Promise<Secret>;

/** How a service signs its callbacks. */
export interface HmacSignatureOptions<Secrets = Secret> {
  /**
   * The header with the signature. `sha256=` before it, or several signatures, need no option: all parts of the header
   * that have the form of a signature are compared.
   */
  header: string;
  /**
   * The secret, or several during a rotation, the newest first. A function finds them by the request, also
   * asynchronously.
   */
  secrets: Secrets;
  /**
   * How the secret is written. Of one in Base64, a `whsec_` at its beginning is left out.
   * @default 'utf8'
   */
  secretEncoding?: 'utf8' | 'base64' | 'hex' | undefined;
  /**
   * The hash function.
   * @default 'sha256'
   */
  algorithm?: 'sha256' | 'sha384' | 'sha512' | undefined;
  /**
   * How the signature is written.
   * @default 'hex'
   */
  encoding?: 'hex' | 'base64' | undefined;
  /**
   * What is signed: `{body}`, `{timestamp}`, other headers by their names in braces, and the text between them.
   * @default '{body}', with `timestamp` '{timestamp}.{body}'
   */
  signed?: string | undefined;
  /**
   * Where the time of sending is: a header, or a part of `header` by its beginning: `t=`. It may be in seconds, in
   * milliseconds, or in ISO 8601 with `Z` or an offset from UTC.
   * @default none
   */
  timestamp?: string | undefined;
  /**
   * How far the time of sending may be from the present, in milliseconds.
   * @default 300_000
   */
  toleranceMs?: number | undefined;
}

/**
 * Options of `sign` of `hmacSignature`.
 *
 * @example
 * const options: SignOptions = { headers: { 'webhook-id': 'msg_1' } };
 */
export interface SignOptions {
  /**
   * What to sign with. Required if `secrets` is a function.
   * @default the newest of `secrets`
   */
  secret?: string | undefined;
  /**
   * Other headers that are signed, such as `webhook-id`. One with the name of `timestamp` replaces the present.
   * @default none
   */
  headers?: Readonly<Record<string, string>> | undefined;
}

/**
 * A verifier, with a method that signs as the service does. `hmacSignature` makes it.
 *
 * @example
 * const toHeaders = (verify: HmacSignature, body: string): Record<string, string> => verify.sign(body);
 */
export interface HmacSignature<
  HostRequest = SenderRequest,
  Verdict = boolean,
  Options extends [options?: SignOptions] = [options?: SignOptions],
> {
  (request: HostRequest, callback: unknown, body: Uint8Array | undefined): Verdict;
  /**
   * Returns the headers to send with a body, which this verifier accepts: the signature, the timestamp and those that
   * were given. What the service itself writes before a signature is left out. Throws INVALID_ARGUMENT.
   */
  sign(body: string | Uint8Array, ...options: Options): Record<string, string>;
}

/**
 * Accepts requests with a header that has an HMAC of the body, made with one of the secrets. It needs the bytes as they
 * were received: mount the router before body parsers. With a function as `secrets` it returns a promise, and refuses a
 * request for which there is no secret. `sign` makes the headers for `deliver` and for other tests. Throws
 * INVALID_ARGUMENT.
 *
 * @example
 * const verify = hmacSignature({ header: 'x-signature', secrets: process.env.CALLBACK_SECRET });
 * const router = transferCallbackRouter({ ...options, verify });
 * const headers = verify.sign('{"event":"transfer.success"}'); // in a test
 */
export function hmacSignature(options: HmacSignatureOptions): HmacSignature;
export function hmacSignature<HostRequest extends SenderRequest>(
  options: HmacSignatureOptions<FindSecrets<HostRequest>>,
): HmacSignature<HostRequest, Promise<boolean>, [options: SignOptions & { secret: string }]>;
export function hmacSignature(
  options: HmacSignatureOptions | HmacSignatureOptions<FindSecrets<SenderRequest>>,
): HmacSignature<SenderRequest, boolean | Promise<boolean>> {
  const scheme = resolveOptions(options);
  const { secrets } = options;
  if (typeof secrets === 'function') {
    const verifyByRequest = async (request: SenderRequest, _callback: unknown, body: Uint8Array | undefined) => {
      const signed = readSigned(scheme, request, body);
      return signed !== undefined && isSigned(scheme, signed, await findKeys(scheme, secrets(request)));
    };
    return Object.assign(verifyByRequest, { sign: signer(scheme, undefined) });
  }
  const keys = toKeys('secrets', secrets, scheme.secretEncoding);
  function verifyHmacSignature(request: SenderRequest, _callback: unknown, body: Uint8Array | undefined) {
    const signed = readSigned(scheme, request, body);
    return signed !== undefined && isSigned(scheme, signed, keys);
  }
  return Object.assign(verifyHmacSignature, { sign: signer(scheme, keys[0]) });
}

/** What one request has signed, and the signatures that it has. */
interface Signed {
  readonly texts: readonly (string | Uint8Array)[];
  readonly candidates: readonly Buffer[];
}

/** Returns `undefined` for a request without the header, without a body or out of tolerance. */
function readSigned(scheme: Scheme, request: SenderRequest, body: Uint8Array | undefined): Signed | undefined {
  const { header, encoding, form, timestamp: time, toleranceMs } = scheme;
  const value = readHeader(request, header);
  if (value === undefined || body === undefined) return undefined;
  const timestamp = time?.read(request, value) ?? '';
  if (time !== undefined && !isRecent(timestamp, toleranceMs)) return undefined;
  const texts = fillTemplate(scheme, { body, timestamp }, (name) => readHeader(request, name) ?? '');
  return { texts, candidates: (value.match(form) ?? []).map((text) => Buffer.from(text, encoding)) };
}

function fillTemplate(
  { parts }: Scheme,
  own: { readonly body: string | Uint8Array; readonly timestamp: string },
  readOther: (name: string) => string,
): (string | Uint8Array)[] {
  const given = new Map<string, string | Uint8Array>(Object.entries(own));
  return parts.map((part) => ('text' in part ? part.text : (given.get(part.name) ?? readOther(part.name))));
}

function digest({ algorithm }: Scheme, texts: Signed['texts'], key: Buffer): Buffer {
  const hmac = createHmac(algorithm, key);
  for (const text of texts) hmac.update(text);
  return hmac.digest();
}

function isSigned(scheme: Scheme, { texts, candidates }: Signed, keys: readonly Buffer[]): boolean {
  let found = false;
  for (const key of keys) {
    const expected = digest(scheme, texts, key);
    for (const candidate of candidates) found = timingSafeEqual(candidate, expected) || found;
  }
  return found;
}

/** Resolves with the keys for a request. Rejects if there are none, so that the log line has the reason. */
async function findKeys({ secretEncoding }: Scheme, secrets: Secret | Promise<Secret>): Promise<readonly Buffer[]> {
  const found = await secrets;
  if (found !== undefined) return toKeys('secrets', found, secretEncoding);
  throw new TransferCallbackError('INVALID_ARGUMENT', '`secrets` has no secret for this request: it was refused.');
}

/** Makes the method `sign`. Without a key, each call needs a secret. */
function signer(scheme: Scheme, newest: Buffer | undefined) {
  return function sign(body: string | Uint8Array, options: SignOptions = {}): Record<string, string> {
    onlyKnownOptions(options, ['secret', 'headers']);
    if (typeof body !== 'string' && !(body instanceof Uint8Array)) {
      throw invalidSecret('body', 'the text or the bytes that are sent', body, 'sign(JSON.stringify(callback))');
    }
    const { secret, headers = {} } = options;
    const key = secret === undefined && newest ? newest : toKeys('secret', secret, scheme.secretEncoding)[0];
    const given = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
    const { header, encoding, timestamp: { name, prefix = '' } = {} } = scheme;
    const isGiven = name !== undefined && given.has(name);
    const timestamp = isGiven ? requireSigned(name, given.get(name)) : String(Math.floor(Date.now() / 1_000));
    const texts = fillTemplate(scheme, { body, timestamp }, (other) => requireSigned(other, given.get(other)));
    const signature = digest(scheme, texts, key).toString(encoding);
    const value = prefix === '' ? signature : `${prefix}${timestamp},${signature}`;
    return { ...Object.fromEntries(given), ...(name !== undefined && { [name]: timestamp }), [header]: value };
  };
}

/** A value that changes on its way, or that HTTP cannot carry, would make another signature. */
function requireSigned(name: string, value: unknown): string {
  if (typeof value === 'string' && /^[!-~](?:[ -~]*[!-~])?$/.test(value)) return value;
  const expected = `a text with the header \`${name}\`, which is signed, in visible ASCII characters`;
  throw invalidSecret('headers', expected, value, `headers: { '${name}': 'a value' }`);
}

/** The number of bytes that each algorithm makes. */
const digestBytes = { sha256: 32, sha384: 48, sha512: 64 };
/** A secret in each encoding. */
const written = { utf8: /^/, base64: /^[\w+/-]+=*$/, hex: /^(?:[\da-f]{2})+$/i };

type Scheme = ReturnType<typeof resolveOptions>;

function resolveOptions(options: HmacSignatureOptions<unknown>) {
  const names = ['header', 'secrets', 'secretEncoding', 'algorithm', 'encoding', 'signed', 'timestamp', 'toleranceMs'];
  onlyKnownOptions(options, names);
  const { secretEncoding = 'utf8', algorithm = 'sha256', encoding = 'hex', timestamp } = options;
  oneOf('secretEncoding', secretEncoding, Object.keys(written));
  oneOf('algorithm', algorithm, Object.keys(digestBytes));
  oneOf('encoding', encoding, ['hex', 'base64']);
  const toleranceMs = wholeNumber('toleranceMs', options.toleranceMs ?? 300_000, { min: 1, example: 300_000 });
  const header = toHeaderName('header', options.header, "header: 'x-signature'");
  const usual = timestamp === undefined ? '{body}' : '{timestamp}.{body}';
  const { signed = usual } = options;
  const parts = typeof signed === 'string' ? parseSigned(signed) : [];
  const has = (name: string): boolean => parts.some((part) => 'name' in part && part.name === name);
  if (!has('body') || has('timestamp') !== (timestamp !== undefined)) {
    const expected = `a text with {body}, and ${timestamp === undefined ? 'without' : 'with'} {timestamp}`;
    throw invalidSecret('signed', expected, signed, `signed: '${usual}'`);
  }
  const checked = parts.map((part) =>
    'text' in part ? part : { name: toHeaderName('signed', part.name, `signed: '${usual}'`) },
  );
  return {
    header,
    secretEncoding,
    algorithm,
    encoding,
    form: toForm(encoding, algorithm),
    parts: checked,
    toleranceMs,
    timestamp: timestamp === undefined ? undefined : toTimestamp(timestamp),
  };
}

/** A part of what is signed: a text, or the name of what a request puts in its place. */
type SignedPart = { readonly text: string } | { readonly name: string };

function parseSigned(signed: string): SignedPart[] {
  // `split` puts what was in braces at the odd places.
  return signed.split(/\{([^{}]*)\}/).map((part, index) => (index % 2 === 0 ? { text: part } : { name: part }));
}

function oneOf(option: string, value: unknown, known: readonly string[]): void {
  if (known.includes(value as string)) return;
  const expected = known.map((each) => `'${each}'`).join(' or ');
  throw invalidArgument(option, expected, value, `${option}: '${known[0] ?? ''}'`);
}

/** Returns the keys of the secrets, the newest first. */
function toKeys(option: string, secrets: Secret, encoding: keyof typeof written): readonly [Buffer, ...Buffer[]] {
  const example = `${option}: process.env.CALLBACK_SECRET`;
  // The service has chosen the secret, so the error must not advise to make one.
  const [newest, ...older] = toSecretList(option, secrets, example, correctVariable);
  const toKey = (secret: string): Buffer => {
    const text = encoding === 'base64' ? secret.replace(/^whsec_/, '') : secret;
    // `Buffer.from` leaves out what does not fit the encoding: the key would be another one, or empty.
    if (!written[encoding].test(text)) throw invalidVariable(option, `written in ${encoding}`, secret, example);
    const key = Buffer.from(text, encoding);
    if (key.length >= minSecretLength) return key;
    throw invalidVariable(option, `at least ${minSecretLength} bytes in ${encoding}`, secret, example);
  };
  return [toKey(newest), ...older.map(toKey)];
}

/** Returns the form of a signature, without the padding of Base64. */
function toForm(encoding: 'hex' | 'base64', algorithm: keyof typeof digestBytes): RegExp {
  const bytes = digestBytes[algorithm];
  const [character, length] =
    encoding === 'hex' ? ['[\\da-fA-F]', 2 * bytes] : ['[\\w+/-]', Math.ceil((4 * bytes) / 3)];
  return new RegExp(`(?<!${character})${character}{${length}}(?!${character})`, 'g');
}

/** ISO 8601 with its offset from UTC: without one, each server would read it in its own time zone. */
const iso = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)`;
const isIso = new RegExp(`^${iso}$`);

/** Where the timestamp is: in the header `name`, or after `prefix` in the header of the signature. */
interface TimestampPlace {
  readonly name?: string;
  readonly prefix?: string;
  read(request: SenderRequest, value: string): string | undefined;
}

function toTimestamp(timestamp: unknown): TimestampPlace {
  if (typeof timestamp === 'string' && /^\w+=$/.test(timestamp)) {
    const pattern = new RegExp(`(?:^|[\\s,;])${timestamp}(${iso}|\\d+)`);
    return { prefix: timestamp, read: (_request, value) => pattern.exec(value)?.[1] };
  }
  const name = toHeaderName('timestamp', timestamp, "timestamp: 'x-timestamp'");
  return { name, read: (request) => readHeader(request, name) };
}

/**
 * A time in seconds is shorter than one in milliseconds for some thousand years. What is neither of them is not recent.
 */
function isRecent(timestamp: string, toleranceMs: number): boolean {
  const sentMs = isIso.test(timestamp)
    ? Date.parse(timestamp)
    : Number(timestamp) * (timestamp.length > 11 ? 1 : 1_000);
  return Math.abs(Date.now() - sentMs) <= toleranceMs;
}
