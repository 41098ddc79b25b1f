import { onlyKnownOptions } from '../../lib/checks.js';
import type { SenderRequest } from '../request.js';
import { isSignedBy, toPublicKeys, type PublicKeys } from './public-keys.js';
import {
  readSigned,
  resolveSignedContent,
  signedContentOptionNames,
  type SignatureEncoding,
  type SignedContentOptions,
} from './signed-content.js';

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
 * A verifier that needs the bytes of the body. `publicKeySignature` and `messageSignature` make it.
 *
 * @example
 * const toVerifiers = (verify: SignatureVerifier) => [verify, urlToken(process.env.CALLBACK_SECRET)];
 */
export interface SignatureVerifier {
  (request: SenderRequest, callback: unknown, body: Uint8Array | undefined): boolean;
  readonly part?: string | undefined;
}

/** A check takes up to 0.3 ms, and a stranger's header has room for a hundred signatures. */
const maxSignatures = 4;

/**
 * Accepts requests with a header that has a signature of the body, made with the private key of one of the public keys:
 * RSA with SHA-256 and PKCS #1 v1.5 or with SHA-512 and PSS, ECDSA P-256 with SHA-256 or P-384 with SHA-384 in DER or raw,
 * or Ed25519. It needs the bytes as they were received: mount the router before body parsers. Throws INVALID_ARGUMENT.
 *
 * @example
 * const verify = publicKeySignature({ header: 'x-signature-sha256', publicKeys: process.env.SERVICE_PUBLIC_KEY });
 * const router = transferCallbackRouter({ ...options, verify });
 */
export function publicKeySignature(options: PublicKeySignatureOptions): SignatureVerifier {
  onlyKnownOptions(options, [...signedContentOptionNames, 'publicKeys', 'encoding']);
  const content = resolveSignedContent(options, options.encoding ?? 'base64', { bytes: 64, orMore: true });
  const keys = toPublicKeys(options.publicKeys);
  function verifyPublicKeySignature(request: SenderRequest, _callback: unknown, body: Uint8Array | undefined) {
    const signed = readSigned(content, request, body);
    if (signed === undefined || signed.candidates.length > maxSignatures) return false;
    const bytes = Buffer.concat(signed.texts.map((text) => Buffer.from(text)));
    return signed.candidates.some((candidate) => isSignedBy(keys, bytes, candidate));
  }
  return Object.assign(verifyPublicKeySignature, { part: content.part });
}
