import { onTestFinished } from 'vitest';
import { transferCallbackListener, transferCallbackReceiver, type CallbackStore } from 'transfer-callbacks';
import { receiverOf } from '../../core/support.js';
import { serviceOf } from '../support.js';
import { transferService, inspectTransfer } from 'transfer-callbacks/client';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { startSandbox } from '../../../sandbox/test/service/support.js';
import { serve } from '../../support/servers/serve.js';

/** The sandbox's service, and an endpoint that handles its callbacks with `handler`, on one store. */
export async function startMerchant(
  store: CallbackStore<unknown>,
  handler: () => unknown = () => undefined,
  finalAfterMs = 0,
) {
  // Other runs have other ids: the stores outlive a test.
  const sandbox = await startSandbox({ finalAfterMs, seed: crypto.getRandomValues(new Uint32Array(1))[0] });
  const client = transferService({ baseUrl: sandbox.baseUrl, ...sandbox.keys.valid });
  const common = { onSuccess: handler, onFailed: handler, logger: false } as const;
  const receiver = transferCallbackReceiver({ store, service: client, ...common });
  const { url, close } = await serve(transferCallbackListener({ receiver }));
  onTestFinished(close);
  return {
    receiver,
    client,
    /** Creates a transfer, and resolves with its id once its callback was delivered, unless it stays open. */
    transfer: async (externalId: string): Promise<string> => {
      await client.createTransfer({ callbackUrl: url, externalId, amount: 250 });
      if (finalAfterMs === 0) await sandbox.idle();
      return String(sandbox.transfers().find((each) => each.externalId === externalId)?.id);
    },
    inspect: (id: string, changes: object = {}) =>
      inspectTransfer({ id, receiver: transferCallbackReceiver({ store, service: client, ...common, ...changes }) }),
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
  changes: object = {},
) {
  const { service, store, ...options } = changes as { service?: object; store?: object };
  const known = serviceOf({ getTransaction: () => Promise.resolve({ ...callback.data, ...data }) });
  const read = () => Promise.resolve(found);
  const given: object = { service: service ?? known, store: { claim: read, read, ...store } };
  return inspectTransfer({ id: 'tr-1', receiver: receiverOf(given), ...options });
}
