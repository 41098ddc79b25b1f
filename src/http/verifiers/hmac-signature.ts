import { createHmac, timingSafeEqual } from 'node:crypto';
import { invalidArgument, invalidSecret, onlyKnownOptions, wholeNumber } from '../../lib/checks.js';
import { readHeader, toHeaderName, type SenderRequest } from '../request.js';
import { minSecretLength, toSecretList, type Secret } from './secrets.js';

/** How a service signs its callbacks. */
export interface HmacSignatureOptions {
  /**
   * The header with the signature. `sha256=` before it, or several signatures, need no option: all parts of the header
   * that have the form of a signature are compared.
   */
  header: string;
  /** The secret, or several during a rotation, the newest first. */
  secrets: Secret;
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
   * Where the time of sending is, in seconds or milliseconds: a header, or a part of `header` by its beginning: `t=`.
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
 * Accepts requests with a header that has an HMAC of the body, made with one of the secrets. It needs the bytes as they
 * were received: mount the router before body parsers. Throws INVALID_ARGUMENT.
 *
 * @example
 * const verify = hmacSignature({ header: 'x-signature', secrets: process.env.CALLBACK_SECRET });
 * const router = transferCallbackRouter({ ...options, verify });
 */
export function hmacSignature(
  options: HmacSignatureOptions,
): (request: SenderRequest, callback: unknown, body: Uint8Array | undefined) => boolean {
  const { header, keys, algorithm, encoding, form, parts, readTimestamp, toleranceMs } = resolveOptions(options);

  return function verifyHmacSignature(request, _callback, body) {
    const value = readHeader(request, header);
    if (value === undefined || body === undefined) return false;
    const timestamp = readTimestamp?.(request, value) ?? '';
    if (readTimestamp !== undefined && !isRecent(timestamp, toleranceMs)) return false;
    const given = new Map(Object.entries({ body, timestamp }));
    // The parts at odd places are names.
    const signed = parts.map((part, index) =>
      index % 2 === 0 ? part : (given.get(part) ?? readHeader(request, part) ?? ''),
    );
    const candidates = (value.match(form) ?? []).map((text) => Buffer.from(text, encoding));
    let isSigned = false;
    for (const key of keys) {
      const hmac = createHmac(algorithm, key);
      for (const part of signed) hmac.update(part);
      const digest = hmac.digest();
      for (const candidate of candidates) isSigned = timingSafeEqual(candidate, digest) || isSigned;
    }
    return isSigned;
  };
}

/** The number of bytes that each algorithm makes. */
const digestBytes = { sha256: 32, sha384: 48, sha512: 64 };
/** A secret in each encoding. */
const written = { utf8: /^/, base64: /^[\w+/-]+=*$/, hex: /^(?:[\da-f]{2})+$/i };
const secretExample = 'secrets: process.env.CALLBACK_SECRET';

function resolveOptions(options: HmacSignatureOptions) {
  const names = ['header', 'secrets', 'secretEncoding', 'algorithm', 'encoding', 'signed', 'timestamp', 'toleranceMs'];
  onlyKnownOptions(options, names);
  const { secretEncoding = 'utf8', algorithm = 'sha256', encoding = 'hex', timestamp } = options;
  oneOf('secretEncoding', secretEncoding, Object.keys(written));
  oneOf('algorithm', algorithm, Object.keys(digestBytes));
  oneOf('encoding', encoding, ['hex', 'base64']);
  const toleranceMs = wholeNumber('toleranceMs', options.toleranceMs ?? 300_000, { min: 1, example: 300_000 });
  const header = toHeaderName('header', options.header, "header: 'x-signature'");
  const keys = toSecretList('secrets', options.secrets, secretExample).map((secret) => toKey(secret, secretEncoding));
  const readTimestamp = timestamp === undefined ? undefined : toTimestampReader(timestamp);
  const usual = timestamp === undefined ? '{body}' : '{timestamp}.{body}';
  const { signed = usual } = options;
  const signedParts = typeof signed === 'string' ? signed.split(/\{([^{}]*)\}/) : [];
  const placeholders = signedParts.filter((_part, index) => index % 2 === 1);
  if (!placeholders.includes('body') || placeholders.includes('timestamp') !== (timestamp !== undefined)) {
    const expected = `a text with {body}, and ${timestamp === undefined ? 'without' : 'with'} {timestamp}`;
    throw invalidSecret('signed', expected, signed, `signed: '${usual}'`);
  }
  const parts = signedParts.map((part, index) =>
    index % 2 === 0 ? part : toHeaderName('signed', part, `signed: '${usual}'`),
  );
  return { header, keys, algorithm, encoding, form: toForm(encoding, algorithm), parts, readTimestamp, toleranceMs };
}

function oneOf(option: string, value: unknown, known: readonly string[]): void {
  if (known.includes(value as string)) return;
  const expected = known.map((each) => `'${each}'`).join(' or ');
  throw invalidArgument(option, expected, value, `${option}: '${known[0] ?? ''}'`);
}

function toKey(secret: string, encoding: keyof typeof written): Buffer {
  const text = encoding === 'base64' ? secret.replace(/^whsec_/, '') : secret;
  // `Buffer.from` leaves out what does not fit the encoding: the key would be another one, or empty.
  if (!written[encoding].test(text)) throw invalidSecret('secrets', `written in ${encoding}`, secret, secretExample);
  const key = Buffer.from(text, encoding);
  if (key.length >= minSecretLength) return key;
  throw invalidSecret('secrets', `at least ${minSecretLength} bytes in ${encoding}`, secret, secretExample);
}

/** Returns the form of a signature, without the padding of Base64. */
function toForm(encoding: 'hex' | 'base64', algorithm: keyof typeof digestBytes): RegExp {
  const bytes = digestBytes[algorithm];
  const [character, length] =
    encoding === 'hex' ? ['[\\da-fA-F]', 2 * bytes] : ['[\\w+/-]', Math.ceil((4 * bytes) / 3)];
  return new RegExp(`(?<!${character})${character}{${length}}(?!${character})`, 'g');
}

/** Returns a function that reads the timestamp from its header, or from the value of the signature's header. */
function toTimestampReader(timestamp: unknown): (request: SenderRequest, value: string) => string | undefined {
  if (typeof timestamp === 'string' && /^\w+=$/.test(timestamp)) {
    const pattern = new RegExp(`(?:^|[\\s,;])${timestamp}(\\d+)`);
    return (_request, value) => pattern.exec(value)?.[1];
  }
  const header = toHeaderName('timestamp', timestamp, "timestamp: 'x-timestamp'");
  return (request) => readHeader(request, header);
}

/** A time in seconds is shorter than one in milliseconds for some thousand years. What is no number is not recent. */
function isRecent(timestamp: string, toleranceMs: number): boolean {
  const sentMs = Number(timestamp) * (timestamp.length > 11 ? 1 : 1_000);
  return Math.abs(Date.now() - sentMs) <= toleranceMs;
}
