export { transferFailed, transferSucceeded } from '../../src/testing/fixtures.js';
export { deliver } from './deliver/deliver.js';
export { transferSandbox, type TransferSandbox } from './service/sandbox.js';
export { transferScenarios } from './service/scenarios.js';
