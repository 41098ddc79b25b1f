import {
  constants,
  createPrivateKey,
  createPublicKey,
  sign,
  verify,
  type KeyObject,
  type VerifyKeyObjectInput,
} from 'node:crypto';
import { correctVariable, invalidVariable, onlyKnownOptions } from '../../lib/checks.js';
import {
  oneOf,
  explainRefusal,
  readSigned,
  resolveSignedContent,
  signedContentOptionNames,
  makeSign,
  signOptionNames,
  type SignatureEncoding,
  type Signed,
  type SignedContentOptions,
  type SignOptions,
} from './signed-content.js';
import { makeVerifier, type SenderRequest } from '../request.js';

/** How a service signs its callbacks with a private key. */
export interface PublicKeySignatureOptions extends SignedContentOptions {
  /** The public key in PEM, or several during a rotation. */
  publicKeys: PublicKeys;
  /**
   * How the signature is written.
   * @default 'base64'
   */
  encoding?: SignatureEncoding | undefined;
}

/**
 * A verifier that needs the bytes of the body, with a method that signs for tests. `publicKeySignature` and
 * `messageSignature` make it.
 *
 * @example
 * const toHeaders = (verify: SignatureVerifier, body: string): Record<string, string> =>
 *   verify.sign(body, { secret: String(process.env.TEST_PRIVATE_KEY) });
 */
export interface SignatureVerifier {
  (request: SenderRequest, callback: unknown, body: Uint8Array | undefined): boolean;
  readonly readsBody: true;
  /**
   * Returns the headers to send with a body, which this verifier accepts. `secret` is the private key in PEM of one of
   * `publicKeys`. `dsaEncoding` is how ECDSA is written: `'der'`, the default of `publicKeySignature`, or
   * `'ieee-p1363'`, as in RFC 9421. Throws INVALID_ARGUMENT.
   */
  sign(
    body: string | Uint8Array,
    options: SignOptions & { secret: string; dsaEncoding?: DsaEncoding | undefined },
  ): Record<string, string>;
}

export type KeySignOptions = Parameters<SignatureVerifier['sign']>[1];

export const keySignOptionNames = [...signOptionNames, 'dsaEncoding'];

/** A check takes up to 0.3 ms, and a forged header has room for a hundred signatures. */
const maxSignatures = 4;

/**
 * Accepts requests with a header that has a signature of the body, made with the private key of one of the public keys:
 * RSA with SHA-256 and PKCS #1 v1.5 or with SHA-512 and PSS, ECDSA P-256 with SHA-256 or P-384 with SHA-384 in DER or
 * raw, or Ed25519. It needs the bytes as they were received: mount the router before body parsers. Throws
 * INVALID_ARGUMENT.
 *
 * @example
 * const verify = publicKeySignature({ header: 'x-signature-sha256', publicKeys: process.env.SERVICE_PUBLIC_KEY });
 * const router = transferCallbackRouter({ ...options, verify });
 */
export function publicKeySignature(options: PublicKeySignatureOptions): SignatureVerifier {
  onlyKnownOptions(options, [...signedContentOptionNames, 'publicKeys', 'encoding']);
  const content = resolveSignedContent(options, options.encoding ?? 'base64', { bytes: 64, orMore: true });
  const keys = toPublicKeys(options.publicKeys);
  function accepts(request: SenderRequest, _callback: unknown, body: Uint8Array | undefined) {
    const signed = readSigned(content, request, body);
    if (typeof signed === 'string' || signed.candidates.length > maxSignatures) return false;
    const bytes = toBytes(signed.texts);
    return signed.candidates.some((candidate) => isSignedBy(keys, bytes, candidate));
  }
  const sign = makeSign<KeySignOptions>(content, keySignOptionNames, ({ secret, dsaEncoding = 'der' }) => {
    const signer = toSigner(secret, dsaEncoding, keys);
    return (texts) => signer.sign(toBytes(texts));
  });
  const explain = (request: SenderRequest, body: Uint8Array | undefined) => explainRefusal(content, request, body);
  return makeVerifier('publicKeySignature', accepts, { readsBody: true as const, sign, explain });
}

function toBytes(texts: Signed['texts']): Buffer {
  return Buffer.concat(texts.map((text) => Buffer.from(text)));
}

/**
 * A public key or a certificate in PEM, or a list of several during a rotation. Only the key of a certificate is read.
 * A `\n` in the string, as in a variable of one line, is a new line. The type includes `undefined` so that
 * `process.env.PUBLIC_KEY` compiles, but making a verifier without its first key throws. A later `undefined` is
 * skipped.
 */
export type PublicKeys = string | undefined | readonly (string | undefined)[];

/** How a private key signs. RFC 9421 has the names. */
interface Algorithm {
  readonly name: string;
  /** The type of a key, or its curve. */
  readonly key: string;
  /** `null` for Ed25519, whose hash is part of the algorithm. */
  readonly hash: string | null;
  readonly options?: Omit<VerifyKeyObjectInput, 'key'>;
  /** The length of two numbers, one after the other, in bytes. */
  readonly rawBytes?: number;
}

/** Without `saltLength` Node verifies a salt of any length. It signs with the longest, and RFC 9421 with 64 bytes. */
const pss = { padding: constants.RSA_PKCS1_PSS_PADDING };
const algorithms: readonly Algorithm[] = [
  { name: 'rsa-v1_5-sha256', key: 'rsa', hash: 'sha256' },
  { name: 'rsa-pss-sha512', key: 'rsa', hash: 'sha512', options: pss },
  { name: 'ecdsa-p256-sha256', key: 'prime256v1', hash: 'sha256', rawBytes: 64 },
  { name: 'ecdsa-p384-sha384', key: 'secp384r1', hash: 'sha384', rawBytes: 96 },
  { name: 'ed25519', key: 'ed25519', hash: null },
];

const minRsaBits = 2_048;
const description = `a public key of RSA with at least ${minRsaBits} bits, ECDSA P-256 or P-384, or Ed25519, in PEM`;
/** One block. Base64 has no hyphen. Node would also take a private key, which does not belong here. */
const isPem = /^-----BEGIN (PUBLIC KEY|RSA PUBLIC KEY|CERTIFICATE)-----[^-]+-----END \1-----$/;

const isPrivatePem = /^-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----/;
const privateInPlaceOfPublic = 'This is a private key. Give the public key of the service.';

export function toPublicKeys(publicKeys: PublicKeys): readonly KeyObject[] {
  const [newest, ...older] = (Array.isArray(publicKeys) ? publicKeys : [publicKeys]) as readonly unknown[];
  return [newest, ...older.filter((each) => each !== undefined)].map((given) => {
    const key = isPem.test(toLines(given)) ? parseKey(createPublicKey, given) : undefined;
    if (key !== undefined && findAlgorithms(key).length > 0) return key;
    const remedy = isPrivatePem.test(toLines(given)) ? privateInPlaceOfPublic : correctVariable;
    throw invalidVariable('publicKeys', description, given, 'publicKeys: process.env.PUBLIC_KEY', remedy);
  });
}

function parseKey(create: (pem: string) => KeyObject, given: unknown): KeyObject | undefined {
  try {
    return create(toLines(given));
  } catch {
    return undefined;
  }
}

/** A variable of one line has `\n` for each new line. */
function toLines(given: unknown): string {
  return typeof given === 'string' ? given.replaceAll('\\n', '\n').trim() : '';
}

/** How ECDSA is written: in DER, or as two numbers, one after the other. */
export type DsaEncoding = 'der' | 'ieee-p1363';

/** Returns what signs with the private key of one of the public keys. Throws INVALID_ARGUMENT. */
export function toSigner(secret: unknown, dsaEncoding: DsaEncoding, publicKeys: readonly KeyObject[]) {
  oneOf('dsaEncoding', dsaEncoding, ['der', 'ieee-p1363']);
  const key = parseKey(createPrivateKey, secret);
  const algorithm = key && findAlgorithms(key)[0];
  if (!key || !algorithm || !publicKeys.some((each) => each.equals(createPublicKey(key)))) {
    const example = 'sign(body, { secret: process.env.TEST_PRIVATE_KEY })';
    throw invalidVariable('secret', 'the private key, in PEM, of one of `publicKeys`', secret, example);
  }
  const { name, hash, options } = algorithm;
  const how = { key, dsaEncoding, saltLength: constants.RSA_PSS_SALTLEN_DIGEST, ...options };
  return { algorithm: name, sign: (bytes: Uint8Array): Buffer => sign(hash, bytes, how) };
}

function findAlgorithms({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): readonly Algorithm[] {
  const { modulusLength = minRsaBits, namedCurve = asymmetricKeyType } = asymmetricKeyDetails ?? {};
  return modulusLength < minRsaBits ? [] : algorithms.filter(({ key }) => key === namedCurve);
}

/** Returns whether one of the keys has made this signature of the bytes, by this algorithm if it is named. */
export function isSignedBy(keys: readonly KeyObject[], bytes: Uint8Array, signature: Uint8Array, algorithm?: string) {
  return keys.some((key) => {
    // OpenSSL takes a signature by PSS without its leading zero bytes. RFC 8017, section 8.1.2, refuses it.
    const { modulusLength = signature.length * 8 } = key.asymmetricKeyDetails ?? {};
    if (signature.length !== Math.ceil(modulusLength / 8)) return false;
    return findAlgorithms(key).some(({ name, hash, options, rawBytes }) => {
      // RFC 9421 writes ECDSA raw, many services in DER. DER of that length would have about 50 zero bits
      // in its numbers.
      const dsaEncoding = signature.length === rawBytes ? 'ieee-p1363' : 'der';
      return (algorithm ?? name) === name && verify(hash, bytes, { key, dsaEncoding, ...options }, signature);
    });
  });
}
