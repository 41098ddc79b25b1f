export * from './node.js';
export { transferCallbackRouter, type ExpressRequest } from './http/router.js';
