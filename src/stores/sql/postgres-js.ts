import { hasMethods } from '../../lib/checks.js';
import { waitForSockets } from '../../lib/deadline.js';
import type { LendRules } from './lend.js';

type Work<Tx> = (tx: Tx) => Promise<void>;

/** Whether `client` is a client of postgres.js. */
export function isPostgresJs(client: unknown): boolean {
  return hasMethods(client, 'unsafe', 'begin');
}

/**
 * Rules of a transaction of postgres.js, or of Drizzle on it. After a transaction has ended, its connection goes to the
 * next one, which would get what the store sends. `prepare` would end it by PREPARE TRANSACTION.
 */
export const onPostgresJs: LendRules = {
  lazy: ['unsafe', 'execute'],
  controls: ['prepare'],
  get nested() {
    return onPostgresJs;
  },
};

/**
 * Runs a transaction of postgres.js, or of a library on it. When its connection ends, postgres.js rejects and awaits
 * `work` no longer, but still sends COMMIT or ROLLBACK when `work` settles. On a closed connection that ends the
 * process. A connection that is open again has the transaction of another caller. So `work` does not settle then.
 */
export async function runOnPostgresJs<Tx>(
  transaction: (work: Work<Tx>) => PromiseLike<unknown>,
  work: Work<Tx>,
): Promise<void> {
  let isOver = false;
  try {
    await transaction(async (tx) => {
      try {
        await work(tx);
      } catch (error) {
        await waitForSockets();
        throw error;
      } finally {
        if (isOver) await new Promise<never>(() => undefined);
      }
    });
  } finally {
    isOver = true;
  }
}
