export { transferSandbox, type TransferSandbox } from './sandbox.js';
export { transferScenarios } from './scenarios.js';
