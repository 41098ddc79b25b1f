// Each SQL library with its store, a handler of one update, and the same transaction by hand: its record, and the update only if the
// record is new.
import { drizzle as drizzlePg } from 'drizzle-orm/node-postgres';
import { drizzle as drizzleMySql } from 'drizzle-orm/mysql2';
import { sql as drizzleSql } from 'drizzle-orm';
import knex from 'knex';
import { Kysely, MysqlDialect, PostgresDialect, sql as kyselySql } from 'kysely';
import { createPool as createCallbackPool } from 'mysql2';
import { createPool } from 'mysql2/promise';
import { Pool } from 'pg';
import postgres from 'postgres';
import { packageUnderTest } from '../package.mjs';

const { drizzleStore, knexStore, kyselyStore, mysqlStore, pgStore, postgresJsStore } = packageUnderTest;

const max = 10;
const fingerprint = 'f';
const record = 'INSERT INTO recorded (id, fingerprint) VALUES';
const update = 'UPDATE booked SET times = times + 1 WHERE id =';

const usingKysely = (db, dialect, ignoreTaken) => ({
  store: kyselyStore(db, { dialect }),
  book: (tx, id) =>
    tx
      .updateTable('booked')
      .set({ times: kyselySql`times + 1` })
      .where('id', '=', id)
      .execute(),
  byHand: (id, book) =>
    db.transaction().execute(async (tx) => {
      const insert = ignoreTaken(tx.insertInto('recorded').values({ id, fingerprint }));
      const { numInsertedOrUpdatedRows } = await insert.executeTakeFirst();
      if (numInsertedOrUpdatedRows > 0n) await book(tx, id);
    }),
  close: () => db.destroy(),
});

const usingKnex = (db, dialect, insert, isNew) => ({
  store: knexStore(db, { dialect }),
  book: (tx, id) => tx('booked').where({ id }).increment('times', 1),
  byHand: (id, book) =>
    db.transaction(async (tx) => {
      if (isNew(await tx.raw(insert, [id, fingerprint]))) await book(tx, id);
    }),
  close: () => db.destroy(),
});

const usingDrizzle = (pool, db, dialect, insert, isNew) => ({
  store: drizzleStore(db, { dialect }),
  book: (tx, id) => tx.execute(drizzleSql`UPDATE booked SET times = times + 1 WHERE id = ${id}`),
  byHand: (id, book) =>
    db.transaction(async (tx) => {
      if (isNew(await tx.execute(insert(id)))) await book(tx, id);
    }),
  close: () => pool.end(),
});

const isNewRow = ({ rowCount }) => rowCount === 1;
const isNewRowOfMySql = ([{ affectedRows }]) => affectedRows === 1;

/** The libraries on PostgreSQL. */
export function onPostgres(connectionString) {
  const pool = () => new Pool({ connectionString, max });
  const [own, drizzles] = [pool(), pool()];
  const sql = postgres(connectionString, { max, onnotice: () => undefined });
  return {
    pg: {
      store: pgStore(own),
      book: (tx, id) => tx.query(`${update} $1`, [id]),
      async byHand(id, book) {
        const client = await own.connect();
        try {
          await client.query('BEGIN');
          const inserted = await client.query(`${record} ($1, $2) ON CONFLICT DO NOTHING`, [id, fingerprint]);
          if (isNewRow(inserted)) await book(client, id);
          await client.query('COMMIT');
        } finally {
          client.release();
        }
      },
      close: () => own.end(),
    },
    'postgres.js': {
      store: postgresJsStore(sql),
      book: (tx, id) => tx`UPDATE booked SET times = times + 1 WHERE id = ${id}`,
      byHand: (id, book) =>
        sql.begin(async (tx) => {
          const { count } = await tx`INSERT INTO recorded (id, fingerprint) VALUES (${id}, 'f') ON CONFLICT DO NOTHING`;
          if (count === 1) await book(tx, id);
        }),
      close: () => sql.end(),
    },
    Kysely: usingKysely(new Kysely({ dialect: new PostgresDialect({ pool: pool() }) }), 'postgres', (insert) =>
      insert.onConflict((conflict) => conflict.doNothing()),
    ),
    Drizzle: usingDrizzle(
      drizzles,
      drizzlePg(drizzles),
      'postgres',
      (id) => drizzleSql`INSERT INTO recorded (id, fingerprint) VALUES (${id}, 'f') ON CONFLICT DO NOTHING`,
      isNewRow,
    ),
    Knex: usingKnex(
      knex({ client: 'pg', connection: connectionString, pool: { min: 0, max } }),
      'postgres',
      `${record} (?, ?) ON CONFLICT DO NOTHING`,
      isNewRow,
    ),
  };
}

/** The libraries on MySQL or MariaDB. */
export function onMySql(uri) {
  const options = { uri, connectionLimit: max };
  const [own, drizzles] = [createPool(options), createPool(options)];
  const insert = record.replace('INSERT', 'INSERT IGNORE');
  return {
    mysql2: {
      store: mysqlStore(own),
      book: (tx, id) => tx.query(`${update} ?`, [id]),
      async byHand(id, book) {
        const connection = await own.getConnection();
        try {
          await connection.beginTransaction();
          if (isNewRowOfMySql(await connection.query(`${insert} (?, ?)`, [id, fingerprint])))
            await book(connection, id);
          await connection.commit();
        } finally {
          connection.release();
        }
      },
      close: () => own.end(),
    },
    Kysely: usingKysely(
      new Kysely({ dialect: new MysqlDialect({ pool: createCallbackPool(options) }) }),
      'mysql',
      (given) => given.ignore(),
    ),
    Drizzle: usingDrizzle(
      drizzles,
      drizzleMySql(drizzles),
      'mysql',
      (id) => drizzleSql`INSERT IGNORE INTO recorded (id, fingerprint) VALUES (${id}, 'f')`,
      isNewRowOfMySql,
    ),
    Knex: usingKnex(
      knex({ client: 'mysql2', connection: uri, pool: { min: 0, max } }),
      'mysql',
      `${insert} (?, ?)`,
      isNewRowOfMySql,
    ),
  };
}
