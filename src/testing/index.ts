export { deliver, type Delivered, type DeliverOptions } from './deliver.js';
export { transferFailed, transferSucceeded } from './fixtures.js';
export { inspectionContract, type InspectionCheck } from './inspection-contract.js';
export { invalidCallbacks } from './invalid.js';
export { storeContract, type StoreCheck } from './store-contract.js';
export type { DeliverTarget } from './target.js';
