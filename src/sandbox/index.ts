export { transferSandbox, type TransferSandbox } from './sandbox.js';
export type { TransferSandboxOptions } from './options.js';
export { transferScenarios, type TransferScenario } from './scenarios.js';
export type { AttemptAnswer } from '../delivery/attempt.js';
export type { PlannedAttempt, SandboxAttempt } from './announcements.js';
export type { SandboxEvent, SandboxTransfer, ShownStatus } from './transfer.js';
export type { SandboxKey, SandboxKeys } from './service-listener.js';
