// Stores, and a receiver of a service that reverses successes, for the tests of one transfer on several stores.
import type { Pool } from 'pg';
import { memoryStore, pgStore, redisStore, type CallbackStore } from 'transfer-callbacks';
import { beforeAll, onTestFinished } from 'vitest';
import { announced, reversingReceiver, type Status } from '../support/helpers/reversing.js';
import { startPostgres } from '../support/servers/postgres.js';
import { startRedisForFile } from '../support/servers/redis-for-file.js';

export type Store = CallbackStore<unknown> & Required<Pick<CallbackStore<unknown>, 'read' | 'forget'>>;

/** Starts servers for a file. Returns a store of a process, one with leases and one with transactions, and its pool. */
export function startStoresForFile() {
  const redis = startRedisForFile();
  const own = {} as { pool: Pool };
  beforeAll(async () => {
    const server = await startPostgres();
    own.pool = server.pool({ max: 10 });
    await pgStore(own.pool).migrate();
    return () => server.stop();
  });
  const stores: [name: string, make: () => Store][] = [
    ['memoryStore', memoryStore],
    ['redisStore', () => redisStore(redis.redis)],
    ['pgStore', () => pgStore(own.pool)],
  ];
  return { own, stores };
}

/**
 * Makes a receiver that closes with its test. `receive` sends it the callback of one transfer, and resolves with the
 * outcome and, for a duplicate of another status, with that status.
 */
export function receivingAs<Tx>(
  id: string,
  store: CallbackStore<Tx>,
  options: Parameters<typeof reversingReceiver<Tx>>[1] = {},
) {
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
  return { receiver, ran, receive };
}
