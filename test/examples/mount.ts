import express from 'express';
import { onTestFinished } from 'vitest';
import {
  memoryStore,
  transferCallbackReceiver,
  transferCallbackRouter,
  type ReceiverOptions,
  type TransferCallbackOutcome,
} from 'transfer-callbacks';
import { reconcileTransfer } from 'transfer-callbacks/client';
import { post } from '../support/helpers/post.js';
import { serve } from '../support/servers/serve.js';
import type { Imitation, Sent, ServiceCallback, Transfer } from './imitations.js';

/** What the handlers book. */
export const entries = { SUCCESS: 'paid', FAILED: 'refunded', REVERSED: 'reversed' } as const;

/** Mounts a service as its row in docs/services.md tells, until the test has ended. */
export async function mount({ name, service, reverses, row }: Imitation) {
  const outcomes: TransferCallbackOutcome[] = [];
  const books: { readonly externalId: string; readonly entry: string }[] = [];
  const handle = ({ data: { externalId, status } }: ServiceCallback): void => {
    books.push({ externalId, entry: entries[status] });
  };
  const receiver = transferCallbackReceiver({
    ...{ store: memoryStore(), service, onSuccess: handle, onFailed: handle, logger: false },
    ...(reverses && { onReversed: handle, retentionMs: 60 * 86_400_000 }),
    onOutcome: (outcome: TransferCallbackOutcome) => outcomes.push(outcome),
  } as ReceiverOptions<ServiceCallback, unknown>);
  const app = express();
  const path = `/callbacks/${name}${row.sign === undefined ? '/:token' : ''}`;
  const router = transferCallbackRouter({ receiver });
  for (const method of row.methods ?? ['post']) app[method](path, ...(row.before ?? []), router);
  app.get(path, (_request, response) => void response.sendStatus(200));
  const { url, close } = await serve(app);
  onTestFinished(close);
  const send = async ({ path, body, ...sent }: Sent): Promise<string> => {
    const response = await post(url + path, body, sent);
    const { outcome = '' } = JSON.parse(response.body) as { outcome?: string };
    return `${response.status} ${outcome}`.trim();
  };
  return {
    ...{ url, outcomes, send },
    booked: ({ ids }: Transfer) => books.filter((each) => each.externalId === ids.externalId).map(({ entry }) => entry),
    reconcile: async (id: string) => (await reconcileTransfer({ receiver, id })).result,
  };
}
