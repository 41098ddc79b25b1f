import { pause } from '../../lib/deadline.js';
import { lend, type Loan } from './lend.js';

/** How often the store checks whether the nested transactions have ended, in milliseconds. */
const pollMs = 5;

/** Options of the store's queries. Those that an app has set for all of its queries may change rows. */
export const plainRows = { type: 'RAW', raw: true, nest: false, plain: false, fieldMap: undefined, mapToModel: false };

/** A transaction of Sequelize 6. */
export interface SequelizeTransaction {
  /** The nested transactions that were begun in it. */
  readonly savepoints?: readonly SequelizeTransaction[];
  parent?: SequelizeTransaction | null;
  finished?: string | undefined;
}

/** After a deadlock Sequelize would end the transaction of a statement, and return its connection to the pool. */
export function keepOpen(transaction: SequelizeTransaction): object {
  const refuse = { value: () => Promise.reject(new Error('The store ends the transaction.')) };
  const finished = { value: undefined, writable: true };
  return Object.create(transaction, { commit: refuse, rollback: refuse, finished }) as object;
}

/** Sequelize nests by `sequelize.transaction({ transaction: tx })`, which begins nothing through `tx`. */
export function lendSequelize(tx: SequelizeTransaction): Loan<SequelizeTransaction> {
  // `begin` commits in MySQL, and the last three replace the connection, or return it to the pool.
  const loan = lend(tx, { controls: ['commit', 'rollback', 'begin', 'prepareEnvironment', 'cleanup', 'forceCleanup'] });
  const waitForAll = async (): Promise<void> => {
    while (findNested(tx).length > 0) await pause(pollMs, { keepAlive: false });
  };
  return {
    tx: loan.tx,
    end(hasSucceeded) {
      for (const nested of findNested(tx)) {
        // What it sends last goes through its parent.
        if (hasSucceeded && nested.parent === loan.tx) nested.parent = tx;
        // Sequelize refuses every statement of a transaction that is finished.
        if (!hasSucceeded) nested.finished = 'rollback';
      }
      loan.end(hasSucceeded);
    },
    idle: () => (findNested(tx).length === 0 ? undefined : waitForAll()),
  };
}

/** Returns the nested transactions that run, in any depth. */
function findNested({ savepoints = [] }: SequelizeTransaction): SequelizeTransaction[] {
  return savepoints.flatMap((nested) => [...(nested.finished === undefined ? [nested] : []), ...findNested(nested)]);
}
