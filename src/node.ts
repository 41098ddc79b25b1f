export * from './shared.js';
export { transferCallbackListener, type TransferCallbackListener } from './http/listener.js';
