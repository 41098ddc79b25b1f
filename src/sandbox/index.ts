export { transferSandbox, type TransferSandbox } from './sandbox.js';
export type { TransferSandboxOptions } from './options.js';
export { transferScenarios, type TransferScenario } from './scenarios.js';
export type { SandboxAttempt } from './announcements.js';
export type { SandboxEvent, SandboxTransfer } from './transfer.js';
