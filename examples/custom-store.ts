import { fileURLToPath } from 'node:url';
import Database from 'libsql'; // Or `better-sqlite3`, which has the same API.
import { transferCallbackReceiver, type CallbackStore, type ClaimRequest, type Lease } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';

// SQLite reads this time while it holds the lock, so a statement that waited for the lock does not compare an old time.
// All processes that share the file run on one machine, and so share the clock.
const now = "CAST(round(unixepoch('subsec') * 1000) AS INTEGER)";
// A late holder finds the token of another holder, its own token with an end in the past, or no row.
const mine = 'id = :id AND token = :token';

/**
 * Keeps claims in SQLite, for an app that runs as several processes on one machine. Each step is one statement. SQLite
 * runs one writing statement at a time, so no other process can write between the comparison and the update.
 *
 * Use the connection for the store only. If a handler has a transaction open on it, a rollback would undo the
 * store's writes. Open it with a `timeout` under `storeTimeoutMs`, because a wait for the lock blocks the process. Set
 * the file's `journal_mode` to WAL once, which makes the waits short.
 */
export function sqliteStore(database: Database.Database): CallbackStore {
  // The token identifies the holder. The fingerprint is NULL until the callback is settled. From then on the end is the
  // end of the retention.
  database.exec(`
    CREATE TABLE IF NOT EXISTS transfer_callbacks
      (id TEXT PRIMARY KEY, token TEXT NOT NULL, fingerprint TEXT, expires_at INTEGER NOT NULL) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS transfer_callbacks_expires_at ON transfer_callbacks (expires_at)`);

  // A callback is free if it is unknown or expired. The same token may claim again, because a reply may have been lost.
  const take = database.prepare(`
    INSERT INTO transfer_callbacks (id, token, expires_at) VALUES (:id, :token, ${now} + :leaseMs)
    ON CONFLICT (id) DO UPDATE SET token = excluded.token, fingerprint = NULL, expires_at = excluded.expires_at
    WHERE expires_at <= ${now} OR (token = excluded.token AND fingerprint IS NULL)`);
  const look = database.prepare(
    'SELECT fingerprint FROM transfer_callbacks WHERE id = :id AND fingerprint IS NOT NULL',
  );
  const extend = database.prepare(`
    UPDATE transfer_callbacks SET expires_at = ${now} + :leaseMs
    WHERE ${mine} AND fingerprint IS NULL AND expires_at > ${now}`);
  const free = database.prepare(`DELETE FROM transfer_callbacks WHERE ${mine} AND fingerprint IS NULL`);
  // Accept the caller's own record too: `settle` may be called again.
  const settleMine = database.prepare(`
    UPDATE transfer_callbacks SET fingerprint = :fingerprint, expires_at = ${now} + :retentionMs
    WHERE ${mine} AND expires_at > ${now}`);
  // Never refuse, because the handler has succeeded. The next holder detects the overlap by the token.
  const settleLate = database.prepare(`
    INSERT OR REPLACE INTO transfer_callbacks VALUES (:id, :token, :fingerprint, ${now} + :retentionMs)`);
  // SQLite does not expire rows. Delete a few at a time, so that no claim waits long.
  const forgetSome = database.prepare(`
    DELETE FROM transfer_callbacks
    WHERE id IN (SELECT id FROM transfer_callbacks WHERE expires_at <= ${now} LIMIT 10)`);

  function leaseOf(id: string, { token, fingerprint, leaseMs, retentionMs }: ClaimRequest): Lease {
    let overlapped = false;
    return {
      tx: undefined,
      renew: () => reply(() => extend.run({ id, token, leaseMs }).changes === 1),
      settle: () =>
        reply(() => {
          const record = { id, token, fingerprint, retentionMs };
          overlapped ||= settleMine.run(record).changes === 0;
          if (overlapped) settleLate.run(record);
          return { overlapped };
        }),
      release: () => reply(() => void free.run({ id, token })),
    };
  }

  return {
    claim: (id, request) =>
      reply(() => {
        forgetSome.run();
        const { token, leaseMs } = request;
        if (take.run({ id, token, leaseMs }).changes === 1) return { state: 'claimed', lease: leaseOf(id, request) };
        const settled = look.get({ id }) as { fingerprint: string } | undefined;
        return settled ? { state: 'settled', fingerprint: settled.fingerprint } : { state: 'in_progress' };
      }),
  };
}

/** Turns a throw into a rejection: SQLite's drivers are synchronous, but a store must reject. */
const reply = <T>(work: () => T): Promise<T> => Promise.resolve().then(work);

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const store = sqliteStore(new Database(process.argv[2] ?? ':memory:', { timeout: 1_000 }));
  const act = (): void => undefined;
  const receiver = transferCallbackReceiver({ store, onSuccess: act, onFailed: act });
  const callback = transferSucceeded();
  for (const delivery of ['first', 'second']) {
    console.log(`The ${delivery} delivery: ${(await receiver.receive(callback)).outcome}`);
  }
}
