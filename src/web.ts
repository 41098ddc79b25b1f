export * from './shared.js';
export { transferCallbackHandler } from './http/handler.js';
