import { createHash } from 'node:crypto';
import { invalidArgument, onlyKnownOptions, wholeNumber } from '../../lib/checks.js';
import { readHeader, toHttpUrl, makeVerifier, type SenderRequest } from '../request.js';
import {
  keySignOptionNames,
  isSignedBy,
  toPublicKeys,
  toSigner,
  type KeySignOptions,
  type SignatureVerifier,
  type PublicKeys,
} from './public-key-signature.js';
import { requireBody, requireSigned, toLowerNames } from './signed-content.js';

/** The requirements for a signature by RFC 9421. */
export interface MessageSignatureOptions {
  /** The public key of the service in PEM, or several during a rotation. */
  publicKeys: PublicKeys;
  /** The URL of your endpoint as the service knows it. Behind a proxy the request has another URL. */
  url: string;
  /**
   * The components that must be signed beside `content-digest`, which is always required. `@target-uri` and
   * `@request-target` contain other components. Without `@authority`, a request for another receiver is accepted.
   * @default ['@method', '@authority', '@path']
   */
  covered?: readonly string[] | undefined;
  /**
   * How far `created` may be in the future, and without `expires` in the past, in milliseconds. `expires` must not have
   * passed.
   * @default 300_000
   */
  toleranceMs?: number | undefined;
}

/**
 * Accepts requests with one signature by RFC 9421 (`Signature-Input` and `Signature`), made with the private key of one
 * of the public keys, that covers a `Content-Digest` (RFC 9530) of the bytes as they were received. It takes the
 * algorithms of `publicKeySignature`. Mount the router before body parsers. Throws INVALID_ARGUMENT.
 *
 * @example
 * const url = 'https://merchant.example/callbacks/transfers';
 * const verify = messageSignature({ publicKeys: process.env.SERVICE_PUBLIC_KEY, url });
 * const router = transferCallbackRouter({ ...options, verify });
 */
export function messageSignature(options: MessageSignatureOptions): SignatureVerifier {
  onlyKnownOptions(options, ['publicKeys', 'url', 'covered', 'toleranceMs']);
  const { covered = ['@method', '@authority', '@path'] } = options;
  const keys = toPublicKeys(options.publicKeys);
  const derived = deriveComponents(toHttpUrl('url', options.url, "url: 'https://merchant.example/callbacks'"));
  const required = ['content-digest', ...toComponentNames(covered, ['@method', ...derived.keys()])];
  const toleranceMs = wholeNumber('toleranceMs', options.toleranceMs ?? 300_000, { min: 1, example: 300_000 });

  /** Returns the signature of the request, or why it is refused before the signature is checked. */
  function readSigned(request: SenderRequest, body: Uint8Array | undefined): MessageSignature | string {
    const [input, signature, digest] = headerNames.map((name) => readHeader(request, name));
    const missing = headerNames.find((name) => readHeader(request, name) === undefined);
    if (missing !== undefined) return `no header ${missing}`;
    if (body === undefined) return 'no bytes of a body';
    const signed = parseSignature(input, signature);
    if (signed === undefined) return 'not one signature of the form of RFC 9421 in signature-input and signature';
    if (!isTimely(signed, toleranceMs)) return 'a time of the signature that is not tolerated';
    if (!coversAll(signed.components, required)) return `not all of ${required.join(', ')} are covered`;
    if (!isDigestOf(digest ?? '', body)) return 'another digest: other bytes than the ones that were signed';
    return signed;
  }
  function accepts(request: SenderRequest, _callback: unknown, body: Uint8Array | undefined) {
    const signed = readSigned(request, body);
    if (typeof signed === 'string') return false;
    const read = (name: string): string | undefined =>
      name === '@method' ? request.method : name.startsWith('@') ? derived.get(name) : readHeader(request, name);
    const values = signed.components.map(read).filter((value) => value !== undefined);
    // The request lacks a component.
    if (values.length < signed.components.length) return false;
    const base = toSignatureBase(signed.components, values, signed.params);
    return isSignedBy(keys, base, signed.signature, signed.algorithm);
  }
  function sign(body: string | Uint8Array, options: KeySignOptions): Record<string, string> {
    onlyKnownOptions(options, keySignOptionNames);
    const digest = toDigest(requireBody(body), '512');
    const signer = toSigner(options.secret, options.dsaEncoding ?? 'ieee-p1363', keys);
    const headers = new Map([...toLowerNames(options.headers), ['content-digest', digest]]);
    const values = new Map([['@method', 'POST'], ...derived, ...headers]);
    const components = [...new Set([...required, ...headers.keys()])];
    const params = toParams(components, signer.algorithm);
    const signed = components.map((name) => requireSigned(name, values.get(name)));
    const signature = signer.sign(toSignatureBase(components, signed, params)).toString('base64');
    return { ...Object.fromEntries(headers), 'signature-input': `sig=${params}`, signature: `sig=:${signature}:` };
  }
  function explain(request: SenderRequest, body: Uint8Array | undefined): string {
    const signed = readSigned(request, body);
    return typeof signed === 'string'
      ? signed
      : 'another signature: another key, or other headers than the ones that were signed';
  }
  return makeVerifier('messageSignature', accepts, { readsBody: true as const, sign, explain });
}

const headerNames = ['signature-input', 'signature', 'content-digest'] as const;

/** Returns the input of a signature that is made now, and valid for a minute. */
function toParams(components: readonly string[], algorithm: string): string {
  const created = Math.floor(Date.now() / 1_000);
  const names = components.map((name) => `"${name}"`).join(' ');
  return `(${names});alg="${algorithm}";created=${created};expires=${created + 60}`;
}

/** The components that another component contains. */
const contained: ReadonlyMap<string, readonly string[]> = new Map([
  ['@request-target', ['@path', '@query']],
  ['@target-uri', ['@scheme', '@authority', '@path', '@query']],
]);

function deriveComponents({ host, origin, pathname, protocol, search }: URL): ReadonlyMap<string, string> {
  return new Map([
    ['@authority', host],
    ['@path', pathname],
    ['@query', search === '' ? '?' : search],
    ['@request-target', pathname + search],
    ['@scheme', protocol.slice(0, -1)],
    ['@target-uri', origin + pathname + search],
  ]);
}

function toComponentNames(covered: unknown, derived: readonly string[]): readonly string[] {
  const isName = (each: unknown): boolean =>
    typeof each === 'string' && (derived.includes(each) || /^[a-z\d-]+$/.test(each));
  if (Array.isArray(covered) && covered.every(isName)) return covered as string[];
  const expected = `a list of header names in lower case and of ${derived.join(', ')}`;
  throw invalidArgument('covered', expected, covered, "covered: ['@method', '@authority', '@path']");
}

function coversAll(components: readonly string[], required: readonly string[]): boolean {
  const covered = new Set(components.flatMap((name) => [name, ...(contained.get(name) ?? [])]));
  // A component that is there twice makes the base ambiguous.
  return new Set(components).size === components.length && required.every((name) => covered.has(name));
}

type MessageSignature = NonNullable<ReturnType<typeof parseSignature>>;

const component = String.raw`"@?[a-z\d!#$%&'*+.^_|~\x60-]+"`;
const parameter = String.raw`;(?:(?:created|expires)=\d{1,15}|(?:alg|keyid|nonce|tag)="(?:[ !#-[\]-~]|\\["\\])*")`;
/** One label, components without parameters, and the known parameters, as RFC 9421 writes them in the signed string. */
const inputForm = new RegExp(`^([a-z*][a-z\\d_.*-]*)=(\\((${component}(?: ${component})*)\\)((?:${parameter})*))$`);

/**
 * Returns the signature of a request, and what its input says: its `params` are the input without its label, which is
 * signed, and times are in seconds. Returns `undefined` if the headers do not have one signature of this form.
 */
function parseSignature(input = '', signature = '') {
  const [, label, params = '', components = '', parameters = ''] = inputForm.exec(input) ?? [];
  const [, name, base64 = ''] = /^([^=]+)=:([^:]+):$/.exec(signature) ?? [];
  const bytes = Buffer.from(base64, 'base64');
  const entries = [...parameters.matchAll(/;([a-z]+)=(\d+|"(?:[^"\\]|\\.)*")/g)].map(
    ([, key = '', value = '']) => [key, value] as const,
  );
  const given = new Map(entries);
  if (label === undefined || label !== name || given.size < entries.length) return undefined;
  // `Buffer.from` drops characters that are not Base64.
  if (bytes.toString('base64') !== base64) return undefined;
  const toNumber = (text: string | undefined): number | undefined => (text === undefined ? undefined : Number(text));
  return {
    signature: bytes,
    components: components.slice(1, -1).split('" "'),
    params,
    algorithm: given.get('alg')?.slice(1, -1),
    created: toNumber(given.get('created')),
    expires: toNumber(given.get('expires')),
  };
}

function isTimely({ created, expires }: MessageSignature, toleranceMs: number): boolean {
  const ageMs = created === undefined ? undefined : Date.now() - created * 1_000;
  if (ageMs !== undefined && ageMs < -toleranceMs) return false;
  return expires === undefined ? ageMs !== undefined && ageMs <= toleranceMs : Date.now() <= expires * 1_000;
}

/** Returns whether each digest of the header is one of the body, by an algorithm that is known and not broken. */
function isDigestOf(header: string, body: Uint8Array): boolean {
  const known = ['256', '512'].map((bits) => toDigest(body, bits));
  const given = header.split(/[ \t]*,[ \t]*/);
  return new Set(given).size === given.length && given.every((each) => known.includes(each));
}

function toDigest(body: Uint8Array, bits: string): string {
  return `sha-${bits}=:${createHash(`sha${bits}`).update(body).digest('base64')}:`;
}

function toSignatureBase(components: readonly string[], values: readonly string[], params: string): Buffer {
  const lines = components.map((name, index) => `"${name}": ${values[index] ?? ''}`);
  // Hosts decode a header as Latin-1, so that these are the bytes that were received.
  return Buffer.from([...lines, `"@signature-params": ${params}`].join('\n'), 'latin1');
}
