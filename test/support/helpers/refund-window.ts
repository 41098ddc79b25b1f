// Opens the window between the snapshot of the first statement of a claim and its locks, in PostgreSQL.
import type { Pool } from 'pg';

/** Any number. The test holds this lock while the window is open. */
const gate = 4_711;

/** The settings of a connection whose claims wait at the gate before they take a lock. */
export const gated = '-c search_path=gated,pg_catalog,public';

/** Makes a function of the store's own name, which the connections with `gated` find first. */
export async function makeGate(admin: Pool): Promise<void> {
  await admin.query(`CREATE SCHEMA gated;
CREATE FUNCTION gated.pg_try_advisory_xact_lock(number bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_lock_shared(${gate});
  PERFORM pg_advisory_unlock_shared(${gate});
  RETURN pg_catalog.pg_try_advisory_xact_lock(number);
END $$`);
}

/** Runs `during` while the claim that `claim` makes has its snapshot, and no lock yet. Resolves with what `claim` does. */
export async function inWindow<T>(admin: Pool, claim: () => Promise<T>, during: () => Promise<unknown>): Promise<T> {
  const holder = await admin.connect();
  try {
    await holder.query(`SELECT pg_advisory_lock(${gate})`);
    const claimed = claim();
    for (;;) {
      const { rowCount } = await holder.query(
        `SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = ${gate} AND NOT granted`,
      );
      if (rowCount !== 0) break;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    await during();
    await holder.query(`SELECT pg_advisory_unlock(${gate})`);
    return await claimed;
  } finally {
    holder.release(true);
  }
}
