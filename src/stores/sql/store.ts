import { receiverDefaults, requirePruneAge } from '../../core/times.js';
import { firstRetryMs } from '../../core/service.js';
import type { CallbackStore, ClaimRequest, StoreRecord } from '../../core/store.js';
import { onlyKnownOptions } from '../../lib/checks.js';
import { toRecordKey } from '../../core/callback.js';
import { TransferCallbackError, listCauses } from '../../lib/errors.js';
import type { Query, Records } from './claims.js';
import type { StoreSettings } from './options.js';
import type { DurabilitySetting, Table } from './table.js';
import type { SqlEngine } from './transaction.js';

/**
 * A store in a table of a database, with methods for that table.
 *
 * @example
 * async function prepare(store: SqlStore<unknown>): Promise<void> {
 *   await store.migrate();
 *   await store.prune({ olderThanMs: 30 * 86_400_000 });
 * }
 */
export interface SqlStore<Tx> extends CallbackStore<Tx> {
  read(key: string, record?: 'reversal'): Promise<StoreRecord>;
  forget(key: string, fingerprint: string, record?: 'reversal'): Promise<boolean>;
  /** Creates the table unless it exists. Several processes may call it concurrently. */
  migrate(): Promise<void>;
  /** The SQL that creates the table, for a migration tool. */
  readonly migrationSql: string;
  /**
   * Deletes the records that were handled more than `olderThanMs` ago (above 90 000), and the claims that processes
   * left behind when they died. A record that still counts, by its `retentionMs`, is kept. Resolves with their number.
   */
  prune(options: { olderThanMs: number }): Promise<number>;
}

const pruneBatch = 1_000;

/** What `check` knows of a library. */
export interface CheckTraits {
  /** Finds options of its driver that may harm. */
  readonly findWarnings?: () => readonly string[];
  /** What of the app may change the rows that the store reads, and cannot be left out. */
  readonly changer?: string;
}

/** Makes the store of an engine. */
export function makeStore<Tx>(
  engine: SqlEngine<Tx>,
  { table, idleTimeoutMs, isTransactional, keepRecords }: StoreSettings,
  { changer, findWarnings = () => [] }: CheckTraits = {},
): SqlStore<Tx> {
  const { query } = engine;
  const mechanism = keepRecords(engine, table, idleTimeoutMs);
  /** Makes a call reject with NO_TABLE if the table is missing. */
  const orNoTable =
    <Args extends unknown[], Reply>(call: (...args: Args) => Promise<Reply>) =>
    (...args: Args): Promise<Reply> =>
      call(...args).catch((error: unknown) => {
        throw nameMissingTable(error, table);
      });
  return {
    transactional: isTransactional,
    claimsBoth: isTransactional,
    claim: orNoTable(async (key, request) => mechanism.claim(await toRecords(key, request.record), request)),
    read: orNoTable(async (key: string, record?: 'reversal') => mechanism.read(await toRecordKey(key, record), key)),
    forget: orNoTable(async (key: string, fingerprint: string, record?: 'reversal') =>
      mechanism.forget(await toRecordKey(key, record), fingerprint),
    ),
    check: orNoTable(async (key, request) => {
      await requireSameRows(query, table, changer);
      await mechanism.tryAll?.(await toRecords(key, request.record), request);
      const isPatient = isTransactional && (idleTimeoutMs ?? Infinity) >= firstRetryMs;
      return [
        ...(isPatient ? [patient] : []),
        ...findWarnings(),
        ...(await findLossySettings(query, table.syntax.durability)),
      ];
    }),
    migrationSql: table.create,
    async migrate() {
      if (await hasTable(query, table)) return;
      try {
        await query(table.create);
      } catch (error) {
        // Another process may have created it: IF NOT EXISTS is not atomic.
        if (!(await hasTable(query, table))) throw error;
      }
    },
    prune: orNoTable(async (options) => {
      onlyKnownOptions(options, ['olderThanMs'], {
        example: `store.prune({ olderThanMs: ${receiverDefaults.retentionMs} })`,
      });
      const { olderThanMs } = options;
      requirePruneAge(olderThanMs);
      return prune(query, table, olderThanMs);
    }),
  };
}

/** Deletes the rows that `prune` of the store is to delete. Resolves with their number. */
async function prune(query: Query, table: Table, olderThanMs: number): Promise<number> {
  let pruned = 0;
  // From id to id: a search from the start would pass all those again that it keeps.
  for (let last: string | undefined = ''; last !== undefined;) {
    const found = (await query(table.findOld(olderThanMs, last, pruneBatch))) as readonly { id: string }[];
    const ids = found.map(({ id }) => table.syntax.parse(id));
    const remove = (): Promise<unknown> => query(table.removeOld(ids, olderThanMs));
    // Once more, because MySQL may end it for a claim that takes over two of the rows.
    if (ids.length > 0) await remove().catch(remove);
    pruned += ids.length;
    last = ids.at(-1);
  }
  return pruned;
}

async function toRecords(transfer: string, record: ClaimRequest['record']): Promise<Records> {
  if (record === undefined) return { transfer, ids: [transfer] };
  const refund = await toRecordKey(transfer, 'reversal');
  return { transfer, ids: record === 'both' ? [refund, transfer] : [refund] };
}

const patient =
  'A machine that vanishes may keep its callbacks claimed for longer than the first retry takes: set `idleTimeoutMs` under 30 000.';

/** Throws STORE_REPLY_UNEXPECTED if a row does not come back as the database sends it. */
async function requireSameRows(
  query: Query,
  table: Table,
  changer = 'an option or a plugin of the app',
): Promise<void> {
  const rows = await query(table.sample);
  if (table.isSample(rows)) return;
  throw new TransferCallbackError(
    'STORE_REPLY_UNEXPECTED',
    `Expected the rows of the store as the database sends them, got others: ${changer} changes them. Give the store a client without it.`,
  );
}

/** Resolves with a sentence for each setting by which a COMMIT does not wait for the disk. */
async function findLossySettings(
  query: Query,
  settings: readonly DurabilitySetting[] = [],
): Promise<readonly string[]> {
  const warnings: string[] = [];
  for (const { name, sql, safe, cure } of settings) {
    const [row] = (await query(`SELECT ${sql} AS found`)) as readonly { readonly found: unknown }[];
    if (row === undefined || safe.includes(String(row.found))) continue;
    warnings.push(
      `\`${name}\` is ${String(row.found)}: a crash of the database or its machine may lose callbacks that were acknowledged. ${cure}`,
    );
  }
  return warnings;
}

/** Asks for the table by reading it: a role that may not create tables could not run CREATE TABLE IF NOT EXISTS. */
function hasTable(query: Query, { probe }: Table): Promise<boolean> {
  return query(probe).then(
    () => true,
    () => false,
  );
}

/** How PostgreSQL and MySQL report a missing table. */
const codes: readonly unknown[] = ['42P01', 1146];
/** Prisma has the code in its message alone, and SQLite has none. */
const texts = /Code: `(?:42P01|1146)`|no such table/;

/** Returns NO_TABLE if a call of the store has failed because its table is missing, and otherwise `error` itself. */
function nameMissingTable(error: unknown, table: Table): unknown {
  if (!isReported(error, table)) return error;
  const advice = 'Call `await store.migrate()` when the app starts, or run `store.migrationSql` with a migration tool';
  return new TransferCallbackError('NO_TABLE', `The table \`${table.plainName}\` does not exist. ${advice}.`, {
    cause: error,
  });
}

/** Whether an error reports that this table is missing, however a library has wrapped it. */
function isReported(error: unknown, { plainName }: Table): boolean {
  return listCauses(error).some(({ code, errno, message }) => {
    const text = String(message);
    return (codes.includes(code) || codes.includes(errno) || texts.test(text)) && hasName(text, plainName);
  });
}

/** Whether a string has a name, and not only a longer one: a trigger of the table may miss another table of the app. */
function hasName(text: string, name: string): boolean {
  const parts = text.split(name);
  return parts.some((part, index) => index > 0 && !/^\w/.test(part) && !/\w$/.test(parts[index - 1] ?? ''));
}
