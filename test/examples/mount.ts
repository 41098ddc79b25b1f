import express from 'express';
import {
  transferCallbackReceiver,
  transferCallbackRouter,
  type ReceiverOptions,
  type TransferCallbackOutcome,
} from 'transfer-callbacks';
import { reconcileTransfer } from 'transfer-callbacks/client';
import { post } from '../support/helpers/post.js';
import { serve } from '../support/servers/serve.js';
import type { Imitation, Sent, ServiceCallback, Transfer } from './imitations.js';
import type { Ledger } from './ledgers.js';

/** What the handlers book. */
export const handlers = { SUCCESS: 'paid', FAILED: 'refunded', REVERSED: 'given back' } as const;

const opened: (() => Promise<void>)[] = [];

/** Closes what was mounted. */
export async function closeAll(): Promise<void> {
  await Promise.all(opened.map((close) => close()));
}

/** Mounts a service as its row in docs/services.md tells. */
export async function mount(
  { name, service, reverses, row }: Imitation,
  { store, book, entries }: Ledger,
  options = {},
) {
  const outcomes: TransferCallbackOutcome[] = [];
  const handle = ({ data }: ServiceCallback, { tx }: { tx: unknown }) =>
    book(data.externalId, handlers[data.status], tx);
  const receiver = transferCallbackReceiver({
    ...{ store, service, onSuccess: handle, onFailed: handle, logger: false },
    ...(reverses && { onReversed: handle, retentionMs: 60 * 86_400_000 }),
    onOutcome: (outcome: TransferCallbackOutcome) => outcomes.push(outcome),
    ...options,
  } as ReceiverOptions<ServiceCallback, unknown>);
  const app = express();
  const path = `/callbacks/${name}${row.sign === undefined ? '/:token' : ''}`;
  const router = transferCallbackRouter({ receiver });
  for (const method of row.methods ?? ['post']) app[method](path, ...(row.before ?? []), router);
  app.get(path, (_request, response) => void response.sendStatus(200));
  const { url, close } = await serve(app);
  opened.push(async () => {
    await close();
    await receiver.close({ timeoutMs: 0 });
  });
  const send = async ({ path, body, ...sent }: Sent): Promise<string> => {
    const response = await post(url + path, body, sent);
    const { outcome = '' } = JSON.parse(response.body) as { outcome?: string };
    return `${response.status} ${outcome}`.trim();
  };
  return {
    ...{ url, receiver, outcomes, send },
    sendAll: (all: readonly Sent[]) => Promise.all(all.map(send)),
    booked: ({ ids }: Transfer) => entries(ids.externalId),
    reconcile: async (id: string) => (await reconcileTransfer({ receiver, id })).result,
  };
}
