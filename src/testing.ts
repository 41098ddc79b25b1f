export { transferFailed, transferSucceeded } from './testing/fixtures.js';
export { invalidCallbacks } from './testing/invalid.js';
export { storeContract, type StoreCheck } from './testing/store-contract.js';
export type { StoreTransaction } from './testing/store-round.js';
