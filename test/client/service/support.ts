// A payout service in words of its own that takes successes back, on a server, and its definition.
import { memoryStore, type CallbackStore } from 'transfer-callbacks';
import { defineService, type PendingTransfer } from 'transfer-callbacks/client';
import { announced, read, reversingReceiver, states, type Status } from '../../support/helpers/reversing.js';
import { startService, type Reply } from '../support.js';

export const apiKey = 'a-key-that-must-not-be-seen';

/** What the service responds for a transfer: its status, another event, or any reply. */
export type Known = Status | 'payout.returning' | Reply;

/**
 * Starts the service of one test. It knows these transfers by their ids, and responds with 404 for all others.
 * `receive` has a receiver of its callbacks, and `ran` the handlers that have succeeded.
 */
export async function startPayouts<Tx = undefined>(
  known: Readonly<Record<string, Known>>,
  store: CallbackStore<Tx> = memoryStore() as CallbackStore<Tx>,
  options: { confirm?: true } & Parameters<typeof reversingReceiver<Tx>>[1] = {},
) {
  const current = new Map(Object.entries(known));
  const { baseUrl, received } = await startService(({ url = '' }) =>
    reply(decodeURIComponent(url.split('/')[2] ?? '')),
  );
  function reply(id: string): Reply {
    const found = current.get(id);
    if (found === undefined) return [404, { message: 'No such payout' }];
    if (typeof found !== 'string') return found;
    if (found === 'payout.returning') return [200, { ...announced('SUCCESS', id), event: found }];
    return [200, announced(found, id)];
  }
  const service = defineService({
    read,
    states: { ...states, 'payout.returning': 'PENDING' },
    baseUrl,
    query: (id, get) => get(`/payouts/${id}`, { authorization: `Bearer ${apiKey}` }),
  });
  return { service, current, received, ...reversingReceiver<Tx>(store, { service, ...options }) };
}

/** The items of a list with these ids, of the last days. */
export const listOf = (...ids: string[]): PendingTransfer[] =>
  ids.map((id) => ({ id, createdAt: Date.now() - 2 * 86_400_000 }));
