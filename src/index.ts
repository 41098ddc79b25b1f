export * from './node.js';
export * from './web.js';
export { transferCallbackRouter } from './http/router.js';
