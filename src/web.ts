export * from './shared.js';
export { transferCallbackHandler, type TransferCallbackHandler } from './http/handler.js';
