export { defineService, type ServiceEvent, type ServiceOptions } from '../../src/client/service/define.js';
export type { PayoutService } from '../../src/core/payout-service.js';
export * from '../../src/http/verifiers/index.js';
export { transferFailed, transferSucceeded } from '../../src/testing/fixtures.js';
export { deliver } from './deliver/deliver.js';
export { transferSandbox, type TransferSandbox } from './service/sandbox.js';
export { transferScenarios } from './service/scenarios.js';
