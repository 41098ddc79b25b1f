import {
  constants,
  createPrivateKey,
  createPublicKey,
  sign,
  verify,
  type KeyObject,
  type VerifyKeyObjectInput,
} from 'node:crypto';
import { correctVariable, invalidVariable } from '../../lib/checks.js';
import { oneOf } from './signed-content.js';

/**
 * A public key or a certificate in PEM, or a list of several during a rotation. Only the key of a certificate is read.
 * A `\n` in the string, as in a variable of one line, is a new line. The type includes `undefined` so that
 * `process.env.PUBLIC_KEY` compiles, but making a verifier without its first key throws. A later `undefined` is
 * skipped.
 */
export type PublicKeys = string | undefined | readonly (string | undefined)[];

/** How a private key signs. RFC 9421 has the names. */
interface Algorithm {
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
const algorithms = {
  'rsa-v1_5-sha256': { key: 'rsa', hash: 'sha256' },
  'rsa-pss-sha512': { key: 'rsa', hash: 'sha512', options: pss },
  'ecdsa-p256-sha256': { key: 'prime256v1', hash: 'sha256', rawBytes: 64 },
  'ecdsa-p384-sha384': { key: 'secp384r1', hash: 'sha384', rawBytes: 96 },
  ed25519: { key: 'ed25519', hash: null },
} as const satisfies Record<string, Algorithm>;

type AlgorithmName = keyof typeof algorithms;
const algorithmNames = Object.keys(algorithms) as AlgorithmName[];

const minRsaBits = 2_048;
const description = `a public key of RSA with at least ${minRsaBits} bits, ECDSA P-256 or P-384, or Ed25519, in PEM`;
/** One block. Base64 has no hyphen. Node would also take a private key, which does not belong here. */
const isPem = /^-----BEGIN (PUBLIC KEY|RSA PUBLIC KEY|CERTIFICATE)-----[^-]+-----END \1-----$/;

const isPrivatePem = /^-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----/;
const privateInPlaceOfPublic = 'This is a private key. Give the public key of the service.';

/** Returns the keys. Throws INVALID_ARGUMENT. */
export function toPublicKeys(publicKeys: PublicKeys): readonly KeyObject[] {
  const [newest, ...older] = (Array.isArray(publicKeys) ? publicKeys : [publicKeys]) as readonly unknown[];
  return [newest, ...older.filter((each) => each !== undefined)].map((given) => {
    const key = parsePem(given);
    if (key !== undefined && findAlgorithms(key).length > 0) return key;
    const remedy = isPrivatePem.test(toLines(given)) ? privateInPlaceOfPublic : correctVariable;
    throw invalidVariable('publicKeys', description, given, 'publicKeys: process.env.PUBLIC_KEY', remedy);
  });
}

function parsePem(given: unknown): KeyObject | undefined {
  const pem = toLines(given);
  try {
    return isPem.test(pem) ? createPublicKey(pem) : undefined;
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

/** Signs as the service does. */
interface Signer {
  readonly algorithm: AlgorithmName;
  readonly sign: (bytes: Uint8Array) => Buffer;
}

/** Returns what signs with the private key of one of the public keys. Throws INVALID_ARGUMENT. */
export function toSigner(secret: unknown, dsaEncoding: DsaEncoding, publicKeys: readonly KeyObject[]): Signer {
  oneOf('dsaEncoding', dsaEncoding, ['der', 'ieee-p1363']);
  const key = parsePrivateKey(secret);
  const algorithm = key && findAlgorithms(key).at(0);
  if (!key || !algorithm || !publicKeys.some((each) => each.equals(createPublicKey(key)))) {
    const example = 'sign(body, { secret: process.env.TEST_PRIVATE_KEY })';
    throw invalidVariable('secret', 'the private key, in PEM, of one of `publicKeys`', secret, example);
  }
  const { hash, options }: Algorithm = algorithms[algorithm];
  const how = { key, dsaEncoding, saltLength: constants.RSA_PSS_SALTLEN_DIGEST, ...options };
  return { algorithm, sign: (bytes) => sign(hash, bytes, how) };
}

function parsePrivateKey(given: unknown): KeyObject | undefined {
  try {
    return createPrivateKey(toLines(given));
  } catch {
    return undefined;
  }
}

/** Returns the algorithms that a key is made for. */
function findAlgorithms({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): AlgorithmName[] {
  const { modulusLength = minRsaBits, namedCurve = asymmetricKeyType } = asymmetricKeyDetails ?? {};
  return modulusLength < minRsaBits ? [] : algorithmNames.filter((name) => algorithms[name].key === namedCurve);
}

/** Returns whether one of the keys has made this signature of the bytes, by this algorithm if it is named. */
export function isSignedBy(keys: readonly KeyObject[], bytes: Uint8Array, signature: Uint8Array, algorithm?: string) {
  return keys.some((key) => {
    // OpenSSL takes a signature by PSS without its leading zero bytes. RFC 8017, section 8.1.2, refuses it.
    const { modulusLength = signature.length * 8 } = key.asymmetricKeyDetails ?? {};
    if (signature.length !== Math.ceil(modulusLength / 8)) return false;
    return findAlgorithms(key).some((name) => {
      const { hash, options, rawBytes }: Algorithm = algorithms[name];
      // RFC 9421 writes ECDSA raw, many services in DER. DER of that length would have about 50 zero bits
      // in its numbers.
      const dsaEncoding = signature.length === rawBytes ? 'ieee-p1363' : 'der';
      return (algorithm ?? name) === name && verify(hash, bytes, { key, dsaEncoding, ...options }, signature);
    });
  });
}
