import { invalidSecret, onlyKnownOptions } from '../../lib/checks.js';
import { fillTemplate, type Signed, type SignedContent } from './signed-content.js';

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
