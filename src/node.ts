export * from './shared.js';
export { transferCallbackListener } from './http/listener.js';
