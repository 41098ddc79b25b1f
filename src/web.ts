export * from './shared.js';
export { transferCallbackHandler, type TransferCallbackHandler, type WebRequest } from './http/handler.js';
