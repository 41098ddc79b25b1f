import { onlyKnownOptions } from '../../lib/checks.js';
import type { SenderRequest } from '../request.js';
import { makeVerifier } from './make-verifier.js';
import { isSignedBy, toPublicKeys, toSigner, type DsaEncoding, type PublicKeys } from './public-keys.js';
import {
  explainRefusal,
  readSigned,
  resolveSignedContent,
  signedContentOptionNames,
  type SignatureEncoding,
  type Signed,
  type SignedContentOptions,
} from './signed-content.js';
import { makeSign, signOptionNames, type SignOptions } from './signing.js';

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
    if (signed === undefined || signed.candidates.length > maxSignatures) return false;
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
