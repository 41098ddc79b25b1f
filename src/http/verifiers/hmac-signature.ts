import { createHmac, timingSafeEqual } from 'node:crypto';
import { correctVariable, invalidVariable, onlyKnownOptions } from '../../lib/checks.js';
import { TransferCallbackError } from '../../lib/errors.js';
import { makeVerifier, type SenderRequest } from '../request.js';
import { minSecretLength, toSecretList, type Secret } from './tokens.js';
import {
  oneOf,
  explainRefusal,
  readSigned,
  resolveSignedContent,
  signedContentOptionNames,
  makeSign,
  signOptionNames,
  type Signed,
  type SignedContentOptions,
  type SignatureEncoding,
  type SignOptions,
} from './signed-content.js';

/** Returns the secrets for a request, for example of its tenant, or `undefined` if there are none. */
type FindSecrets<HostRequest> = (request: HostRequest) => Secret | Promise<Secret>;

/** How a service signs its callbacks. */
export interface HmacSignatureOptions<Secrets = Secret> extends SignedContentOptions {
  /**
   * The secret, or several during a rotation, the newest first. A function finds them for a request, and
   * may be asynchronous.
   */
  secrets: Secrets;
  /**
   * How the secret is written. With `'base64'`, a `whsec_` at its beginning is left out.
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
  encoding?: SignatureEncoding | undefined;
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
  readonly readsBody: true;
  /**
   * Returns the headers to send with a body, which this verifier accepts: the signature, the timestamp and the given
   * headers. A prefix that the service itself writes before a signature is left out. Throws INVALID_ARGUMENT.
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
  const explain = (request: SenderRequest, body: Uint8Array | undefined) => explainRefusal(scheme, request, body);
  const properties = { readsBody: true as const, explain };
  const { secrets } = options;
  if (typeof secrets === 'function') {
    const accepts = async (request: SenderRequest, _callback: unknown, body: Uint8Array | undefined) => {
      const signed = readSigned(scheme, request, body);
      return typeof signed !== 'string' && isSigned(scheme, signed, await findKeys(scheme, secrets(request)));
    };
    return makeVerifier('hmacSignature', accepts, { ...properties, sign: signer(scheme, undefined) });
  }
  const keys = toKeys('secrets', secrets, scheme.secretEncoding);
  function accepts(request: SenderRequest, _callback: unknown, body: Uint8Array | undefined) {
    const signed = readSigned(scheme, request, body);
    return typeof signed !== 'string' && isSigned(scheme, signed, keys);
  }
  return makeVerifier('hmacSignature', accepts, { ...properties, sign: signer(scheme, keys[0]) });
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
  const sign = makeSign<SignOptions>(scheme, signOptionNames, ({ secret }) => {
    const key = secret === undefined && newest ? newest : toKeys('secret', secret, scheme.secretEncoding)[0];
    return (texts) => digest(scheme, texts, key);
  });
  return (body: string | Uint8Array, options: SignOptions = {}): Record<string, string> => sign(body, options);
}

const digestBytes = { sha256: 32, sha384: 48, sha512: 64 };
/** A secret in each encoding. */
const written = { utf8: /^/, base64: /^[\w+/-]+=*$/, hex: /^(?:[\da-f]{2})+$/i };

type Scheme = ReturnType<typeof resolveOptions>;

function resolveOptions(options: HmacSignatureOptions<unknown>) {
  onlyKnownOptions(options, [...signedContentOptionNames, 'secrets', 'secretEncoding', 'algorithm', 'encoding']);
  const { secretEncoding = 'utf8', algorithm = 'sha256', encoding = 'hex' } = options;
  oneOf('secretEncoding', secretEncoding, Object.keys(written));
  oneOf('algorithm', algorithm, Object.keys(digestBytes));
  const content = resolveSignedContent(options, encoding, { bytes: digestBytes[algorithm] });
  return { ...content, secretEncoding, algorithm };
}

/** Returns the keys of the secrets, the newest first. */
function toKeys(option: string, secrets: Secret, encoding: keyof typeof written): readonly [Buffer, ...Buffer[]] {
  const example = `${option}: process.env.CALLBACK_SECRET`;
  // The service has chosen the secret, so the error must not advise to make one.
  const [newest, ...older] = toSecretList(option, secrets, example, correctVariable);
  const toKey = (secret: string): Buffer => {
    const text = encoding === 'base64' ? secret.replace(/^whsec_/, '') : secret;
    // `Buffer.from` drops characters that do not fit the encoding: the key would be wrong or empty.
    if (!written[encoding].test(text)) throw invalidVariable(option, `written in ${encoding}`, secret, example);
    const key = Buffer.from(text, encoding);
    if (key.length >= minSecretLength) return key;
    throw invalidVariable(option, `at least ${minSecretLength} bytes in ${encoding}`, secret, example);
  };
  return [toKey(newest), ...older.map(toKey)];
}
