export { transferFailed, transferSucceeded } from './fixtures.js';
export { storePromises, type StorePromise } from './store-promises.js';
