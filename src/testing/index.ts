export { deliver, type Delivered, type DeliverOptions } from './deliver.js';
export { transferFailed, transferSucceeded } from './fixtures.js';
export { invalidCallbacks, type InvalidCallback } from './invalid.js';
export { storePromises, type StorePromise } from './store-promises.js';
