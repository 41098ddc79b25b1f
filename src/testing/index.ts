export { deliver } from './deliver.js';
export { transferFailed, transferSucceeded } from './fixtures.js';
export { invalidCallbacks } from './invalid.js';
export { storeContract } from './store-contract.js';
export type { StoreTransaction } from './store-transaction.js';
