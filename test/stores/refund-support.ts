// Stores, and a receiver of a service that reverses successes, for the tests of one transfer on several stores.
import { memoryStore, pgStore, redisStore, type CallbackStore } from 'transfer-callbacks';
import { onTestFinished } from 'vitest';
import { announced, reversingReceiver, type Status } from '../support/helpers/reversing.js';
import { startLedgerForFile } from '../support/servers/postgres-for-file.js';
import { startRedisForFile } from '../support/servers/redis-for-file.js';

export type Store = CallbackStore<unknown> & Required<Pick<CallbackStore<unknown>, 'read' | 'forget'>>;

/** Starts servers for a file. Returns a store of a process, one with leases and one with transactions, and its pool. */
export function startStoresForFile() {
  const redis = startRedisForFile();
  const own = startLedgerForFile({ max: 10 });
  const stores: [name: string, make: () => Store][] = [
    ['memoryStore', memoryStore],
    ['redisStore', () => redisStore(redis.redis)],
    ['pgStore', () => pgStore(own.pool)],
  ];
  return { own, stores };
}

/**
 * Makes a transfer, and a receiver that closes with its test. `receive` sends it a callback of the transfer, and resolves
 * with the outcome and, for a duplicate of another status, with that status.
 */
export function makeTransfer(store: Store, options: Parameters<typeof reversingReceiver<unknown>>[1] = {}) {
  const id = crypto.randomUUID();
  const { receiver, ran } = reversingReceiver(store, options);
  onTestFinished(async () => {
    await receiver.close({ timeoutMs: 0 });
  });
  const receive = async (status: Status, changes: object = {}): Promise<string> => {
    const ended = await receiver.receive(announced(status, id, changes));
    const recorded =
      ended.outcome === 'duplicate' && ended.recorded !== undefined ? ` of ${ended.recorded.status}` : '';
    return `${ended.outcome}${recorded}`;
  };
  return { id, store, receiver, ran, receive };
}
