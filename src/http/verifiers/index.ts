// The verifiers that users get, from every entry of both packages.
export { hmacSignature, type HmacSignature } from './hmac-signature.js';
export { ipAllowList } from './ip-allow-list.js';
export { messageSignature } from './message-signature.js';
export { publicKeySignature, type SignatureVerifier } from './public-key-signature.js';
export type { SignOptions } from './signed-content.js';
export { basicAuth, headerToken, transferToken, urlToken, type TransferTokenVerifier } from './tokens.js';
