export * from './node.js';
export * from './web.js';
export { transferCallbackRouter, type ExpressRequest } from './http/router.js';
