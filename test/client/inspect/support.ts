import { onTestFinished } from 'vitest';
import { transferCallbackListener, transferCallbackReceiver, type CallbackStore } from 'transfer-callbacks';
import { transferClient, inspectTransfer } from 'transfer-callbacks/client';
import { transferSucceeded } from 'transfer-callbacks/testing';
import type { InspectOptions } from '../../../src/client/inspect/inspect.js';
import { startSandbox } from '../../../sandbox/test/service/support.js';
import { serve } from '../../support/servers/serve.js';

/** The sandbox's service, and an endpoint that handles its callbacks with `handler`, on one store. */
export async function startMerchant(
  store: CallbackStore<unknown>,
  handler: () => unknown = () => undefined,
  finalAfterMs = 0,
) {
  const receiver = transferCallbackReceiver({ store, onSuccess: handler, onFailed: handler, logger: false });
  const { url, close } = await serve(transferCallbackListener({ receiver }));
  onTestFinished(close);
  // Other runs have other ids: the stores outlive a test.
  const sandbox = await startSandbox({ finalAfterMs, seed: crypto.getRandomValues(new Uint32Array(1))[0] });
  const client = transferClient({ baseUrl: sandbox.baseUrl, ...sandbox.keys.valid });
  return {
    receiver,
    client,
    /** Creates a transfer, and resolves with its id once its callback was delivered, unless it stays open. */
    transfer: async (externalId: string): Promise<string> => {
      await client.createTransfer({ callbackUrl: url, externalId, amount: 250 });
      if (finalAfterMs === 0) await sandbox.idle();
      return String(sandbox.transfers().find((each) => each.externalId === externalId)?.id);
    },
    inspect: (id: string, options: Partial<InspectOptions> = {}) => inspectTransfer({ client, store, id, ...options }),
  };
}

/** The callback of the transfer that `inspectWith` asks about. */
export const callback = transferSucceeded({
  id: 'tr-1',
  externalId: 'payout-1',
  amount: 5,
  timestamp: new Date().toISOString(),
});

/** The facts of this callback, as the record of a store has them. */
export const record = '["SUCCESS",5,"XAF","payout-1"]';

/** Inspects a transfer where the service responds with `data` and the store has this record. */
export function inspectWith(
  data: object,
  found: Awaited<ReturnType<NonNullable<CallbackStore['read']>>>,
  options: object = {},
) {
  return inspectTransfer({
    id: 'tr-1',
    client: { getTransaction: () => Promise.resolve({ ...callback.data, ...data }) },
    store: { read: () => Promise.resolve(found) },
    ...options,
  });
}
