import { invalidSecret, onlyKnownOptions, invalidArgument, wholeNumber } from '../../lib/checks.js';
import { readHeader, toHeaderName, type SenderRequest } from '../request.js';

/** Where a request has its signatures, and what they sign. */
export interface SignedContentOptions {
  /**
   * The header with the signature. `sha256=` before it, or several signatures, need no option: all parts of the header
   * that have the form of a signature are compared.
   */
  header: string;
  /**
   * What is signed: `{body}`, `{timestamp}`, other headers by their names in braces, and the text between them.
   * @default '{body}', with `timestamp` '{timestamp}.{body}'
   */
  signed?: string | undefined;
  /**
   * Where the time of sending is: a header, or a part of `header` by its beginning: `t=`. It may be in seconds, in
   * milliseconds, or in ISO 8601 with `Z` or an offset from UTC. It may not be `undefined`: an old request that is sent
   * again would be accepted.
   * @default none
   */
  timestamp?: string;
  /**
   * How far the time of sending may be from the present, in milliseconds.
   * @default 300_000
   */
  toleranceMs?: number | undefined;
}

export const signedContentOptionNames = ['header', 'signed', 'timestamp', 'toleranceMs'];

export type SignatureEncoding = 'hex' | 'base64';

type SignedContent = ReturnType<typeof resolveSignedContent>;

/** Checks the options. Throws INVALID_ARGUMENT. */
export function resolveSignedContent(
  options: SignedContentOptions,
  encoding: SignatureEncoding,
  size: Parameters<typeof toForm>[1],
) {
  const isTimed = 'timestamp' in options;
  oneOf('encoding', encoding, ['hex', 'base64']);
  const toleranceMs = wholeNumber('toleranceMs', options.toleranceMs ?? 300_000, { min: 1, example: 300_000 });
  const header = toHeaderName('header', options.header, "header: 'x-signature'");
  const usual = isTimed ? '{timestamp}.{body}' : '{body}';
  const { signed = usual } = options;
  const template = typeof signed === 'string' ? parseTemplate(signed) : [];
  const has = (name: string): boolean => template.some((each) => 'name' in each && each.name === name);
  if (!has('body') || has('timestamp') !== isTimed) {
    const expected = `a string with {body}, and ${isTimed ? 'with' : 'without'} {timestamp}`;
    throw invalidSecret('signed', expected, signed, `signed: '${usual}'`);
  }
  return {
    header,
    encoding,
    form: toForm(encoding, size),
    template: template.map((each) =>
      'text' in each ? each : { name: toHeaderName('signed', each.name, `signed: '${usual}'`) },
    ),
    toleranceMs,
    timestamp: isTimed ? toTimestamp(options.timestamp) : undefined,
  };
}

/** A piece of the signed string: a literal string, or the name of a value of the request. */
type Piece = { readonly text: string } | { readonly name: string };

function parseTemplate(signed: string): Piece[] {
  // `split` puts the names in braces at the odd places.
  return signed.split(/\{([^{}]*)\}/).map((part, index) => (index % 2 === 0 ? { text: part } : { name: part }));
}

/** Throws INVALID_ARGUMENT if `value` is not one of the known strings. */
export function oneOf(option: string, value: unknown, known: readonly string[]): void {
  if (known.includes(value as string)) return;
  const expected = known.map((each) => `'${each}'`).join(' or ');
  throw invalidArgument(option, expected, value, `${option}: '${known[0] ?? ''}'`);
}

/** What one request has signed, and the signatures that it has. */
export interface Signed {
  readonly texts: readonly (string | Uint8Array)[];
  readonly candidates: readonly Buffer[];
}

/** Returns what a request has signed, or why it is refused before its signature is checked. */
export function readSigned(
  content: SignedContent,
  request: SenderRequest,
  body: Uint8Array | undefined,
): Signed | string {
  const { header, encoding, form, timestamp: time, toleranceMs } = content;
  const value = readHeader(request, header);
  if (value === undefined) return `no header ${header}`;
  if (body === undefined) return 'no bytes of a body';
  const timestamp = time?.read(request, value);
  if (time !== undefined && timestamp === undefined) return `no time after ${time.prefix} in the header ${header}`;
  if (timestamp !== undefined && !isRecent(timestamp, toleranceMs)) return describeAge(timestamp, toleranceMs);
  const candidates = (value.match(form) ?? []).map((text) => Buffer.from(text, encoding));
  if (candidates.length === 0) return `no signature in ${encoding} of the expected length in the header ${header}`;
  const own = { body, timestamp: timestamp ?? '' };
  return { texts: fillTemplate(content, own, (name) => readHeader(request, name) ?? ''), candidates };
}

/**
 * Returns why the signature of a request was refused, for people who set it up: by names and times, never by the
 * signature or by another value of the request.
 */
export function explainRefusal(content: SignedContent, request: SenderRequest, body: Uint8Array | undefined): string {
  const { header, template, timestamp: time } = content;
  const names = [header, time?.name, ...template.map((each) => ('name' in each ? each.name : undefined))];
  const isMissing = (name = 'body'): boolean =>
    !['body', 'timestamp'].includes(name) && readHeader(request, name) === undefined;
  const missing = names.find(isMissing);
  if (missing !== undefined) return `no header ${missing}`;
  const signed = readSigned(content, request, body);
  if (typeof signed === 'string') return signed;
  return 'another signature: another secret or key, or other bytes than the ones that were signed';
}

function describeAge(timestamp: string, toleranceMs: number): string {
  const seconds = Math.round((Date.now() - toSentMs(timestamp)) / 1_000);
  if (Number.isNaN(seconds)) return 'a timestamp that is no time';
  const side = seconds < 0 ? 'in the future' : 'old';
  return `a timestamp ${Math.abs(seconds)} s ${side}, with a tolerance of ${toleranceMs / 1_000} s`;
}

/** Returns the signed strings, one after the other. */
function fillTemplate(
  { template }: SignedContent,
  own: { readonly body: Uint8Array; readonly timestamp: string },
  readOther: (name: string) => string,
): (string | Uint8Array)[] {
  const given = new Map<string, string | Uint8Array>(Object.entries(own));
  return template.map((each) => ('text' in each ? each.text : (given.get(each.name) ?? readOther(each.name))));
}

/** Returns the form of a signature, without the padding of Base64. */
function toForm(encoding: SignatureEncoding, { bytes, orMore = false }: { bytes: number; orMore?: boolean }): RegExp {
  const [character, perByte, count] =
    encoding === 'hex' ? ['[\\da-fA-F]', '{2}', bytes] : ['[\\w+/-]', '', Math.ceil((4 * bytes) / 3)];
  return new RegExp(`(?<!${character})(?:${character}${perByte}){${count}${orMore ? ',' : ''}}(?!${character})`, 'g');
}

/** ISO 8601 with its offset from UTC: without one, each server would read it in its own time zone. */
const iso = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)`;
const isIso = new RegExp(`^${iso}$`);

/** Returns where the timestamp is: in the header `name`, or after `prefix` in the header of the signature. */
function toTimestamp(timestamp: unknown) {
  if (typeof timestamp === 'string' && /^\w+=$/.test(timestamp)) {
    const pattern = new RegExp(`(?:^|[\\s,;])${timestamp}(${iso}|\\d+)`);
    return { prefix: timestamp, read: (_request: SenderRequest, value: string) => pattern.exec(value)?.[1] };
  }
  const name = toHeaderName('timestamp', timestamp, "timestamp: 'x-timestamp'");
  return { name, read: (request: SenderRequest) => readHeader(request, name) };
}

/**
 * A time in seconds is shorter than one in milliseconds for some thousand years. A time in another unit is not recent.
 */
function toSentMs(timestamp: string): number {
  return isIso.test(timestamp) ? Date.parse(timestamp) : Number(timestamp) * (timestamp.length > 11 ? 1 : 1_000);
}

function isRecent(timestamp: string, toleranceMs: number): boolean {
  return Math.abs(Date.now() - toSentMs(timestamp)) <= toleranceMs;
}

/**
 * Options of `sign` of `hmacSignature`, `publicKeySignature` and `messageSignature`.
 *
 * @example
 * const options: SignOptions = { headers: { 'webhook-id': 'msg_1' } };
 */
export interface SignOptions {
  /**
   * What to sign with: a secret, or the private key in PEM of a public key. Required with public keys, and if `secrets`
   * is a function.
   * @default the newest of `secrets`
   */
  secret?: string | undefined;
  /**
   * Other headers that are signed, such as `webhook-id`. A header with the name of `timestamp` replaces the present.
   * @default none
   */
  headers?: Readonly<Record<string, string>> | undefined;
}

export const signOptionNames = ['secret', 'headers'];

/**
 * Makes the method `sign` of a verifier of this content. `toSigner` returns what signs with the secret of the options,
 * and throws INVALID_ARGUMENT if it cannot.
 */
export function makeSign<Options extends SignOptions>(
  content: SignedContent,
  optionNames: readonly string[],
  toSigner: (options: Options) => (texts: Signed['texts']) => Buffer,
) {
  return function sign(body: string | Uint8Array, options: Options): Record<string, string> {
    onlyKnownOptions(options, optionNames);
    const bytes = requireBody(body);
    const signTexts = toSigner(options);
    const given = toLowerNames(options.headers);
    const { header, encoding, timestamp: { name, prefix = '' } = {} } = content;
    const isGiven = name !== undefined && given.has(name);
    const timestamp = isGiven ? requireSigned(name, given.get(name)) : String(Math.floor(Date.now() / 1_000));
    const texts = fillTemplate(content, { body: bytes, timestamp }, (other) => requireSigned(other, given.get(other)));
    const signature = signTexts(texts).toString(encoding);
    const value = prefix === '' ? signature : `${prefix}${timestamp},${signature}`;
    return { ...Object.fromEntries(given), ...(name !== undefined && { [name]: timestamp }), [header]: value };
  };
}

/** Returns the bytes of a body that is to be signed. Throws INVALID_ARGUMENT. */
export function requireBody(body: unknown): Buffer {
  if (typeof body === 'string' || body instanceof Uint8Array) return Buffer.from(body as string);
  throw invalidSecret('body', 'the string or the bytes that are sent', body, 'sign(JSON.stringify(callback))');
}

/** Throws INVALID_ARGUMENT for a value that is not an object. */
export function toLowerNames(headers: SignOptions['headers'] = {}): ReadonlyMap<string, string> {
  if (typeof headers !== 'object' || (headers as unknown) === null || Array.isArray(headers)) {
    throw invalidSecret('headers', 'an object with a string for each name', headers, "headers: { 'x-id': '7' }");
  }
  return new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

/** A value that changes on its way, or that HTTP cannot carry, would make another signature. */
export function requireSigned(name: string, value: unknown): string {
  if (typeof value === 'string' && /^[!-~](?:[ -~]*[!-~])?$/.test(value)) return value;
  const expected = `a string with the header \`${name}\`, which is signed, in visible ASCII characters`;
  throw invalidSecret('headers', expected, value, `headers: { '${name}': 'a value' }`);
}
