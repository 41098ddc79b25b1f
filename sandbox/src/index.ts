export { defineService, type ServiceEvent, type ServiceOptions } from '../../src/client/service/define.js';
export type { PayoutService } from '../../src/core/payout-service.js';
export { hmacSignature, type HmacSignature } from '../../src/http/verifiers/hmac-signature.js';
export { ipAllowList } from '../../src/http/verifiers/ip-allow-list.js';
export { messageSignature } from '../../src/http/verifiers/message-signature.js';
export { publicKeySignature, type SignatureVerifier } from '../../src/http/verifiers/public-key-signature.js';
export type { SignOptions } from '../../src/http/verifiers/signing.js';
export {
  basicAuth,
  headerToken,
  transferToken,
  urlToken,
  type TransferTokenVerifier,
} from '../../src/http/verifiers/tokens.js';
export { transferFailed, transferSucceeded } from '../../src/testing/fixtures.js';
export { deliver } from './deliver/deliver.js';
export { transferSandbox, type TransferSandbox } from './service/sandbox.js';
export { transferScenarios } from './service/scenarios.js';
