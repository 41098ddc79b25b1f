import { hasMethods, invalidSecret, maxTimerMs, onlyKnownOptions } from '../../lib/checks.js';
import { pause } from '../../lib/deadline.js';
import { lend, type LendRules } from './lend.js';
import {
  keepOpen,
  LateStatements,
  lendSequelize,
  onPostgresJs,
  plainRows,
  pollMs,
  PrismaOperations,
  runOnPostgresJs,
  type KnexTransaction,
  type QueryRunner,
  type SequelizeTransaction,
} from './library-transactions.js';
import { optionNames, type DialectOptions, type SqlDialect, type SqlStoreOptions } from './options.js';
import { makeSqlStore, postgresEnds, type LibraryTraits, type SqlDatabase } from './sql-store.js';
import type { SqlStore } from './store.js';

/*
 * A store for each library: how it sends a statement, and how it runs a transaction. A library is typed by the methods
 * that are called, and `tx` as the library types its own transactions.
 */

type Method = (...args: never) => unknown;
type Call = (...args: readonly unknown[]) => PromiseLike<unknown>;
/** The argument of a function that a library calls with its transaction. */
type TxOf<Work> = Work extends (tx: infer Tx) => unknown ? Tx : never;
/** The `tx` of handlers. On SQLite they have none. */
type TxOn<D extends SqlDialect, Tx> = D extends 'sqlite' ? undefined : Tx;

/**
 * Keeps records in the database of Prisma 6 or 7. Throws INVALID_ARGUMENT.
 *
 * @example
 * const store = prismaStore(prisma, { dialect: 'postgres' });
 */
export function prismaStore<
  P extends { $queryRawUnsafe: Method; $transaction: Method; $extends: Method },
  D extends SqlDialect,
>(prisma: P, options: DialectOptions<D>): SqlStore<TxOn<D, TxOf<Parameters<P['$transaction']>[0]>>> {
  const library = requireMethods(
    { prisma },
    "prismaStore(new PrismaClient(), { dialect: 'postgres' })",
    '$queryRawUnsafe',
    '$transaction',
    '$extends',
  );
  const transactions = new WeakMap<object, PrismaOperations>();
  const calls: LibraryCalls<typeof library> = {
    query: (sql, tx) => (tx === undefined ? library.$queryRawUnsafe(sql) : transactions.get(tx)?.send(sql, tx)),
    transaction(work, { queueMs }) {
      const operations = new PrismaOperations();
      const extended = library.$extends(operations.extension) as unknown as typeof library;
      const run = (tx: typeof library): Promise<void> => {
        transactions.set(tx, operations);
        return work(tx);
      };
      // At its deadline Prisma returns the connection to the pool, even if the database has not replied to ROLLBACK.
      return extended.$transaction(run, { maxWait: Math.ceil(queueMs), timeout: maxTimerMs });
    },
  };
  return storeOn(options, calls, {
    ends: postgresEnds.none,
    changer: 'an extension of the Prisma client',
    // Prisma 7 nests transactions.
    lend: (tx) => lend(tx, { nests: ['$transaction'] }, transactions.get(tx)),
  });
}

/**
 * Keeps records in the database of Drizzle, whatever driver it runs on. Throws INVALID_ARGUMENT.
 *
 * @example
 * const store = drizzleStore(db, { dialect: 'postgres' });
 */
export function drizzleStore<B extends { transaction: Method }, D extends SqlDialect>(
  db: B,
  options: DialectOptions<D>,
): SqlStore<TxOn<D, TxOf<Parameters<B['transaction']>[0]>>> {
  if (requireOptions(options).dialect === 'sqlite') {
    const library = requireMethods({ db }, "drizzleStore(drizzle(client), { dialect: 'sqlite' })", 'all', 'run');
    return storeOn(options, { query: (sql) => (hasRows(sql) ? library.all(sql) : library.run(sql)) });
  }
  const library = requireMethods(
    { db },
    "drizzleStore(drizzle(pool), { dialect: 'postgres' })",
    'execute',
    'transaction',
  );
  const query = (sql: string, tx: typeof library = library) => tx.execute(sql);
  const { $client: client } = db as { readonly $client?: { readonly options?: unknown } };
  const isPostgresJs = hasMethods(client, 'unsafe', 'begin');
  if (!isPostgresJs) {
    const calls = { query, transaction: (work: (tx: typeof library) => Promise<void>) => library.transaction(work) };
    return storeOn(options, calls, { findWarnings: () => warnOfQueryTimeout(client?.options) });
  }
  const calls: LibraryCalls<typeof library> = {
    query,
    transaction: (work) =>
      runOnPostgresJs(library.transaction.bind(library), (tx: typeof library) => {
        // As in `postgresJsStore`. It goes in one message with the next statement, which fails if this one does.
        tx.execute('SET TRANSACTION ISOLATION LEVEL READ COMMITTED').then(undefined, () => undefined);
        return work(tx);
      }),
  };
  return storeOn(options, calls, { lend: (tx) => lend(tx, onPostgresJs) });
}

/**
 * Keeps records in the database of Kysely. Throws INVALID_ARGUMENT.
 *
 * @example
 * const store = kyselyStore(kysely, { dialect: 'postgres' });
 */
export function kyselyStore<
  B extends { executeQuery: Method; transaction: () => { execute: Method } },
  D extends SqlDialect,
>(db: B, options: DialectOptions<D>): SqlStore<TxOn<D, TxOf<Parameters<ReturnType<B['transaction']>['execute']>[0]>>> {
  const library = requireMethods(
    { db },
    "kyselyStore(new Kysely({ dialect }), { dialect: 'postgres' })",
    'executeQuery',
    'transaction',
  );
  // A plugin of the app may change rows: one that parses JSON would make an array of a fingerprint.
  const withoutPlugins = (tx: typeof library & { withoutPlugins?: () => typeof library }): typeof library =>
    tx.withoutPlugins?.() ?? tx;
  return storeOn(options, {
    query: (sql, tx: typeof library = library) => withoutPlugins(tx).executeQuery(toCompiledQuery(sql)),
    transaction: (work) => (library.transaction() as unknown as { execute: Call }).execute(work),
  });
}

/** Makes what Kysely's `CompiledQuery.raw` makes. */
function toCompiledQuery(sql: string): object {
  const query = { kind: 'RawNode', sqlFragments: [sql], parameters: [] };
  return { sql, parameters: [], query, queryId: { queryId: crypto.randomUUID() } };
}

/**
 * Keeps records in the database of Knex. Throws INVALID_ARGUMENT.
 *
 * @example
 * const store = knexStore(knex, { dialect: 'postgres' });
 */
export function knexStore<B extends { raw: Method; transaction: Method }, D extends SqlDialect>(
  knex: B,
  options: DialectOptions<D>,
): SqlStore<TxOn<D, TxOf<Parameters<B['transaction']>[0]>>> {
  const library = requireMethods({ knex }, "knexStore(knex(config), { dialect: 'postgres' })", 'raw', 'transaction');
  const late = new LateStatements();
  return storeOn(
    options,
    {
      query(sql, tx: typeof library = library) {
        late.allow(tx, sql);
        return tx.raw(sql);
      },
      transaction: (work) => library.transaction(work),
    },
    {
      // A `commit` or `rollback` of the handler would make Knex return the connection to its pool.
      lend: (tx) => late.endKnex(lend(tx, { controls: ['commit', 'rollback'] }), tx as typeof tx & KnexTransaction),
      findWarnings: () =>
        warnOfQueryTimeout((knex as { client?: { config?: { connection?: unknown } } }).client?.config?.connection),
      changer: '`postProcessResponse` of Knex',
    },
  );
}

/**
 * Keeps records in the database of TypeORM. Throws INVALID_ARGUMENT.
 *
 * @example
 * const store = typeormStore(dataSource, { dialect: 'postgres' });
 */
export function typeormStore<S extends { query: Method; transaction: Method; manager: unknown }, D extends SqlDialect>(
  source: S,
  options: DialectOptions<D>,
): SqlStore<TxOn<D, S['manager']>> {
  const library = requireMethods(
    { source },
    "typeormStore(new DataSource(config), { dialect: 'postgres' })",
    'query',
    'transaction',
  );
  const late = new LateStatements();
  return storeOn(
    options,
    {
      async query(sql, tx: typeof library = library) {
        if (options.dialect === 'sqlite') await waitForApp(source);
        if (tx !== library) late.allow(toRunner(tx), sql);
        // TypeORM resolves with `undefined` for several statements.
        return (await tx.query(sql)) ?? [];
      },
      transaction: (work) => library.transaction(work),
    },
    {
      ends: postgresEnds.only,
      lend: (tx) => late.endTypeorm(lend(tx, manager), toRunner(tx)),
      findWarnings: () => {
        const { options: own } = source as { readonly options?: { readonly extra?: unknown } };
        return warnOfQueryTimeout(own, own?.extra);
      },
    },
  );
}

/**
 * Resolves when no transaction of the app is open on the only connection that TypeORM has for a file of SQLite. Such
 * a transaction would take the record with it when it rolls back.
 */
async function waitForApp(source: unknown): Promise<void> {
  if (!hasMethods(source, 'createQueryRunner')) return;
  const runner = (source as { createQueryRunner(): { readonly isTransactionActive: boolean } }).createQueryRunner();
  while (runner.isTransactionActive) await pause(pollMs, { keepAlive: false });
}

/** Returns TypeORM's own connection of a transaction. */
function toRunner(manager: object): QueryRunner {
  return (manager as { readonly queryRunner: QueryRunner }).queryRunner;
}

/** TypeORM's own connection of a transaction. It counts the nested ones. */
const queryRunner: LendRules = {
  controls: ['release', 'releasePostgresConnection', 'commitTransaction', 'rollbackTransaction'],
  isNested: (runner, name) => !name.startsWith('release') && Number(Reflect.get(runner, 'transactionDepth')) > 1,
};

/** TypeORM's manager of a transaction, which its nested ones share. Its `release` releases its connection. */
const manager: LendRules = {
  controls: ['release'],
  parts: { queryRunner },
  get nested() {
    return manager;
  },
};

/**
 * Keeps records in the database of Sequelize 6. Throws INVALID_ARGUMENT.
 *
 * @example
 * const store = sequelizeStore(sequelize, { dialect: 'postgres' });
 */
export function sequelizeStore<S extends { query: Method; transaction: Method }, D extends SqlDialect>(
  sequelize: S,
  options: DialectOptions<D>,
): SqlStore<TxOn<D, Awaited<ReturnType<S['transaction']>>>> {
  const library = requireMethods(
    { sequelize },
    "sequelizeStore(new Sequelize(url), { dialect: 'postgres' })",
    'query',
    'transaction',
  );
  return storeOn(
    options,
    {
      // `null` keeps a statement outside of the transaction that Sequelize may find by its CLS.
      query: (sql, transaction: SequelizeTransaction | null = null) =>
        library.query(sql, { ...plainRows, transaction: transaction && keepOpen(transaction) }),
      transaction: (work) => library.transaction(work),
    },
    { lend: lendSequelize },
  );
}

/**
 * Keeps records in PostgreSQL, through postgres.js. Throws INVALID_ARGUMENT.
 *
 * @example
 * const store = postgresJsStore(sql);
 */
export function postgresJsStore<S extends { unsafe: Method; begin: Method }>(
  sql: S,
  options: SqlStoreOptions = {},
): SqlStore<TxOf<Parameters<S['begin']>[1]>> {
  const library = requireMethods({ sql }, 'postgresJsStore(postgres(url))', 'unsafe', 'begin');
  onlyKnownOptions(options, optionNames);
  // PostgreSQL refuses no COMMIT of this level. After a refused one, postgres.js gives the connection to the next
  // transaction, and that would get the ROLLBACK.
  const begin = (work: (tx: typeof library) => Promise<void>) => library.begin('isolation level read committed', work);
  return storeOn(
    { ...options, dialect: 'postgres' },
    {
      query: (text, tx: typeof library = library) => tx.unsafe(text),
      transaction: (work) => runOnPostgresJs(begin, work),
    },
    {
      changer: '`transform` of postgres.js',
      lend: (tx) => lend(tx, onPostgresJs),
    },
  );
}

/**
 * Returns the only argument of `given` if it has the methods of the library and takes a connection for each
 * transaction. Throws INVALID_ARGUMENT with this `example` otherwise.
 */
function requireMethods<Name extends string>(
  given: Readonly<Record<string, unknown>>,
  example: string,
  ...names: readonly Name[]
): Record<Name, Call> {
  const [[option, value] = ['', undefined]] = Object.entries(given);
  // The value may be a URL with a password in it.
  if (!hasMethods(value, ...names))
    throw invalidSecret(option, `an object with ${names.join(' and ')}`, value, example);
  if (isOneConnection(value)) {
    throw invalidSecret(option, 'on a pool, and neither on a single connection nor a transaction', value, example);
  }
  return value as Record<Name, Call>;
}

/** Whether `value` would run every transaction on one connection. The transactions of two handlers would be one. */
function isOneConnection(value: unknown): boolean {
  const { $client, isTransaction, queryRunner } = value as Readonly<Record<string, unknown>>;
  return (
    // A transaction of Kysely or Knex, of TypeORM, and of Drizzle.
    isTransaction === true ||
    hasMethods(queryRunner, 'query') ||
    hasMethods(value, 'rollback') ||
    // Drizzle on a client of pg or Neon, and on a connection of mysql2.
    hasMethods($client, 'escapeIdentifier') ||
    hasMethods($client, 'beginTransaction')
  );
}

type LibraryCalls<Tx> = Pick<SqlDatabase<Tx>, 'query'> & Partial<SqlDatabase<Tx>>;

/** Makes the store. The types of the factories tell what `tx` is: here it is what the library passes. */
function storeOn<Tx, PublicTx>(
  options: DialectOptions,
  library: LibraryCalls<Tx>,
  traits?: LibraryTraits<Tx>,
): SqlStore<PublicTx> {
  const { dialect, ...rest } = requireOptions(options);
  return makeSqlStore({ ...library, dialect } as SqlDatabase<Tx>, rest, traits) as unknown as SqlStore<PublicTx>;
}

/** Checks the options. JavaScript may leave them out: then the error names `dialect`, the one that is required. */
function requireOptions(options: DialectOptions): DialectOptions {
  const given = (options as DialectOptions | null | undefined) ?? ({} as DialectOptions);
  onlyKnownOptions(given, ['dialect', ...optionNames]);
  return given;
}

/** Whether a statement has rows to read. Some drivers of SQLite refuse to read the rows of any other statement. */
function hasRows(sql: string): boolean {
  return sql.startsWith('SELECT') || sql.endsWith('RETURNING id');
}

/** What `check` warns of on Drizzle, Knex and TypeORM. */
const harmful =
  'The driver has a `query_timeout`. If the reply to a BEGIN is late, this library loses the connection, or a write of the app. Set `statement_timeout` and `keepAlive: true` in its place.';

/** Returns a warning if one of these options of a driver, or an address in them, has the `query_timeout` of pg. */
function warnOfQueryTimeout(...given: readonly unknown[]): readonly string[] {
  return given.some(hasQueryTimeout) ? [harmful] : [];
}

function hasQueryTimeout(options: unknown): boolean {
  if (typeof options === 'string') return /[?&]query_timeout=[1-9]/.test(options);
  const { query_timeout, connectionString, url } = (options ?? {}) as Readonly<Record<string, unknown>>;
  return (
    Number(query_timeout) > 0 ||
    [connectionString, url].some((each) => typeof each === 'string' && hasQueryTimeout(each))
  );
}
