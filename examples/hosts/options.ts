// What all hosts beside this file share. Your own has your store, your secret and your handlers.
import { setTimeout } from 'node:timers/promises';
import {
  headerToken,
  ipAllowList,
  memoryStore,
  type CallbackStore,
  type TransferCallbackOptions,
} from 'transfer-callbacks/web';

const memory = memoryStore();
const store: CallbackStore = {
  ...memory,
  claim: (id, request) =>
    id === 'store-down' ? Promise.reject(new Error('The store is down.')) : memory.claim(id, request),
};

export const token = headerToken('x-callback-token', process.env.CALLBACK_TOKEN);

export const options = {
  store,
  verify: [token, ipAllowList(['127.0.0.1', '::1'])],
  async onSuccess({ data }) {
    if (data.id === 'handler-fails') throw new Error('The ledger is down.');
    if (data.id === 'slow') await setTimeout(2_000);
  },
  onFailed() {
    // Refund.
  },
} satisfies TransferCallbackOptions;
