export { deliver, type Delivered, type DeliverOptions } from './deliver.js';
export { transferFailed, transferSucceeded } from './fixtures.js';
export { invalidCallbacks } from './invalid.js';
export { storeContract, type StoreCheck, type StoreCheckOptions } from './store-contract.js';
export type { StoreTransaction } from './store-transaction.js';
export type { DeliverTarget } from './target.js';
