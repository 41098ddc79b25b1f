export { transferSandbox, type TransferSandbox } from './sandbox/sandbox.js';
export { transferScenarios } from './sandbox/scenarios.js';
