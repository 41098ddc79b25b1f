/**
 * What a handler does through `tx`, for the checks of a transactional store.
 *
 * @example
 * const transaction: StoreTransaction<PoolClient> = {
 *   write: (tx, key) => tx.query('INSERT INTO writes (key) VALUES ($1)', [key]),
 *   count: async (key) => (await pool.query('SELECT FROM writes WHERE key = $1', [key])).rowCount ?? 0,
 * };
 */
export interface StoreTransaction<Tx> {
  /** Inserts one row for `key`, in a table without a unique index: a second row for the key must be possible. */
  write(tx: Tx, key: string): Promise<unknown>;
  /** Resolves with the number of rows for `key` that are committed, read on another connection. */
  count(key: string): Promise<number>;
  /** Sends a statement that fails. Without it no check shows what becomes of a handler that swallows a failure. */
  fail?(tx: Tx): Promise<unknown>;
  /** Sends ROLLBACK. Without it no check shows what becomes of a handler that ends its transaction. */
  rollback?(tx: Tx): Promise<unknown>;
  /**
   * Inserts `row` into a table with a unique index. Two transactions that insert the same two rows in opposite order
   * meet a deadlock. Without it no check shows what becomes of a handler that swallows one.
   */
  lock?(tx: Tx, row: string): Promise<unknown>;
}
