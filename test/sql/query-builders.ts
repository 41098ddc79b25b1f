import { fileURLToPath } from 'node:url';
import { eq } from 'drizzle-orm';
import { drizzle as drizzleSqlite } from 'drizzle-orm/better-sqlite3';
import * as mysqlCore from 'drizzle-orm/mysql-core';
import { drizzle as drizzleMysql } from 'drizzle-orm/mysql2';
import { drizzle as drizzlePostgres } from 'drizzle-orm/node-postgres';
import * as pgCore from 'drizzle-orm/pg-core';
import { drizzle as drizzlePostgresJs } from 'drizzle-orm/postgres-js';
import createKnex, { type Knex } from 'knex';
import {
  CompiledQuery,
  Kysely,
  MysqlDialect,
  PostgresDialect,
  SqliteDialect,
  type Dialect,
  type Generated,
  type Transaction,
} from 'kysely';
import { createPool } from 'mysql2';
import { createPool as createPromisePool } from 'mysql2/promise';
import { Pool } from 'pg';
import postgres from 'postgres';
import { openFile } from './databases.js';
import { fortyRows, toTransaction, withoutTransaction, type Library, type Opened } from './opened.js';

const pgTables = {
  written: pgCore.pgTable('written', { id: pgCore.serial().primaryKey(), name: pgCore.varchar().notNull() }),
  locked: pgCore.pgTable('locked', { name: pgCore.varchar().primaryKey() }),
};
const mysqlName = () => mysqlCore.varchar({ length: 255 });
const mysqlTables = {
  written: mysqlCore.mysqlTable('written', {
    id: mysqlCore.int().autoincrement().primaryKey(),
    name: mysqlName().notNull(),
  }),
  locked: mysqlCore.mysqlTable('locked', { name: mysqlName().primaryKey() }),
};

/** The object that Drizzle passes to the function of a transaction. */
type TxOf<Db extends { transaction: (work: never) => unknown }> = Parameters<Parameters<Db['transaction']>[0]>[0];

export const drizzle: Library = {
  name: 'Drizzle',
  open: {
    postgres(url, max) {
      const pool = makePool(url, max);
      return openDrizzle(drizzlePostgres(pool), () => pool.end());
    },
    mysql(url, max) {
      const pool = createPromisePool({ uri: url, connectionLimit: max });
      const db = drizzleMysql(pool);
      return {
        client: db,
        transaction: toTransaction<TxOf<typeof db>>({
          insert: (tx, table, name) => tx.insert(mysqlTables[table]).values({ name }),
          read: (name) => db.select().from(mysqlTables.written).where(eq(mysqlTables.written.name, name)),
          send: (tx, sql) => tx.execute(sql),
        }),
        leave: (tx: TxOf<typeof db>) => tx.transaction((inner) => inner.execute('SELECT * FROM not_there')),
        nest: (tx: TxOf<typeof db>, work) => tx.transaction((inner) => work(inner as never)),
        close: () => pool.end(),
      };
    },
    sqlite(url) {
      const file = openFile(url);
      return {
        client: drizzleSqlite(file),
        close: () => {
          file.close();
        },
      };
    },
  },
};

export const drizzleOnPostgresJs: Library = {
  name: 'Drizzle on postgres.js',
  open: {
    postgres(url, max) {
      const sql = postgres(url, { max, onnotice: () => undefined });
      return openDrizzle(drizzlePostgresJs(sql), () => sql.end());
    },
  },
};

function openDrizzle(db: pgCore.PgDatabase<pgCore.PgQueryResultHKT>, close: () => unknown): Opened {
  return {
    client: db,
    transaction: toTransaction<TxOf<typeof db>>({
      insert: (tx, table, name) => tx.insert(pgTables[table]).values({ name }),
      read: (name) => db.select().from(pgTables.written).where(eq(pgTables.written.name, name)),
      send: (tx, sql) => tx.execute(sql),
    }),
    leave: (tx: TxOf<typeof db>) => tx.transaction((inner) => inner.execute('SELECT * FROM not_there')),
    nest: (tx: TxOf<typeof db>, work) => tx.transaction((inner) => work(inner as never)),
    close,
  };
}

function makePool(url: string, max: number): Pool {
  const pool = new Pool({ connectionString: url, max });
  pool.on('error', () => undefined); // A connection that the server has broken.
  return pool;
}

interface Rows {
  written: { id: Generated<number>; name: string };
  locked: { name: string };
}

export const kysely: Library = {
  name: 'Kysely',
  open: {
    postgres: (url, max) => openKysely(new PostgresDialect({ pool: makePool(url, max) })),
    mysql: (url, max) => openKysely(new MysqlDialect({ pool: createPool({ uri: url, connectionLimit: max }) })),
    sqlite: (url) => withoutTransaction(openKysely(new SqliteDialect({ database: openFile(url) }))),
  },
};

function openKysely(dialect: Dialect): Opened<Kysely<Rows>, Transaction<Rows>> {
  const db = new Kysely<Rows>({ dialect });
  return {
    client: db,
    transaction: toTransaction<Transaction<Rows>>({
      insert: (tx, table, name) => tx.insertInto(table).values({ name }).execute(),
      read: (name) => db.selectFrom('written').selectAll().where('name', '=', name).execute(),
      send: (tx, sql) => tx.executeQuery(CompiledQuery.raw(sql)),
    }),
    close: () => db.destroy(),
  };
}

export const knexConfigs = {
  postgres: (url: string, max: number): Knex.Config => ({ client: 'pg', connection: url, pool: { min: 0, max } }),
  mysql: (url: string, max: number): Knex.Config => ({ client: 'mysql2', connection: url, pool: { min: 0, max } }),
  sqlite: (url: string): Knex.Config => ({
    ...{ client: 'better-sqlite3', connection: fileURLToPath(url), useNullAsDefault: true },
  }),
};

export const knex: Library = {
  name: 'Knex',
  open: {
    postgres: (url, max) => openKnex(knexConfigs.postgres(url, max)),
    mysql: (url, max) => openKnex(knexConfigs.mysql(url, max)),
    sqlite: (url) => withoutTransaction(openKnex(knexConfigs.sqlite(url))),
  },
};

function openKnex(config: Knex.Config): Opened<Knex, Knex.Transaction> {
  const db = createKnex(config);
  return {
    client: db,
    transaction: toTransaction<Knex.Transaction>({
      insert: (tx, table, name) => tx(table).insert({ name }),
      read: (name) => db('written').where({ name }),
      send: (tx, sql) => tx.raw(sql),
    }),
    leave: (tx: Knex.Transaction) => tx.transaction((inner) => inner.raw('SELECT * FROM not_there')),
    nest: (tx: Knex.Transaction, work) => tx.transaction((inner) => work(inner as never)),
    repeats: { batchInsert: (tx: Knex.Transaction, name) => tx.batchInsert('written', fortyRows(name), 1) },
    ends: {
      commit: (tx: Knex.Transaction) => tx.commit(),
      rollback: (tx: Knex.Transaction) => tx.rollback(),
    },
    close: () => db.destroy(),
  };
}
