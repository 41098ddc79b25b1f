// Callbacks through the store of an SQL library, beside the same transaction by hand: its record, and the update of the handler only
// if the record is new. README.md tells how it is measured.
import knex from 'knex';
import { createConnection, createPool } from 'mysql2/promise';
import { Pool } from 'pg';
import postgres from 'postgres';
import { startMariaDb } from '../test/support/servers/mysql.ts';
import { callbackText, packageUnderTest } from './callback.mjs';
import { startPostgres } from './support/databases.mjs';
import { percentile, startNode, stop } from './support/processes.mjs';

const { knexStore, mysqlStore, pgStore, postgresJsStore } = packageUnderTest;

const concurrent = 32;
const max = 10;
const fingerprint = 'f';
const record = 'INSERT INTO recorded (id, fingerprint) VALUES';
const update = 'UPDATE booked SET times = times + 1 WHERE id =';
const tables = (id) =>
  `CREATE TABLE booked (id ${id} PRIMARY KEY, times int); CREATE TABLE recorded (id ${id} PRIMARY KEY, fingerprint text)`;

const usingKnex = (db, dialect, insert, isNew) => ({
  store: knexStore(db, { dialect }),
  book: (tx, id) => tx('booked').where({ id }).increment('times', 1),
  byHand: (id, book) =>
    db.transaction(async (tx) => {
      if (isNew(await tx.raw(insert, [id, fingerprint]))) await book(tx, id);
    }),
  close: () => db.destroy(),
});

const isNewRow = ({ rowCount }) => rowCount === 1;
const isNewRowOfMySql = ([{ affectedRows }]) => affectedRows === 1;

/** The libraries on PostgreSQL. */
function onPostgres(connectionString) {
  const pool = new Pool({ connectionString, max });
  const sql = postgres(connectionString, { max, onnotice: () => undefined });
  return {
    pg: {
      store: pgStore(pool),
      book: (tx, id) => tx.query(`${update} $1`, [id]),
      async byHand(id, book) {
        const client = await pool.connect();
        try {
          await client.query('BEGIN');
          const inserted = await client.query(`${record} ($1, $2) ON CONFLICT DO NOTHING`, [id, fingerprint]);
          if (isNewRow(inserted)) await book(client, id);
          await client.query('COMMIT');
        } finally {
          client.release();
        }
      },
      close: () => pool.end(),
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
    Knex: usingKnex(
      knex({ client: 'pg', connection: connectionString, pool: { min: 0, max } }),
      'postgres',
      `${record} (?, ?) ON CONFLICT DO NOTHING`,
      isNewRow,
    ),
  };
}

/** The libraries on MySQL or MariaDB. */
function onMySql(uri) {
  const pool = createPool({ uri, connectionLimit: max });
  const insert = record.replace('INSERT', 'INSERT IGNORE');
  return {
    mysql2: {
      store: mysqlStore(pool),
      book: (tx, id) => tx.query(`${update} ?`, [id]),
      async byHand(id, book) {
        const connection = await pool.getConnection();
        try {
          await connection.beginTransaction();
          const inserted = await connection.query(`${insert} (?, ?)`, [id, fingerprint]);
          if (isNewRowOfMySql(inserted)) await book(connection, id);
          await connection.commit();
        } finally {
          connection.release();
        }
      },
      close: () => pool.end(),
    },
    Knex: usingKnex(
      knex({ client: 'mysql2', connection: uri, pool: { min: 0, max } }),
      'mysql',
      `${insert} (?, ?)`,
      isNewRowOfMySql,
    ),
  };
}

const databases = {
  async PostgreSQL() {
    const server = await startPostgres();
    await server.pool().query(tables('text'));
    return { server, on: onPostgres };
  },
  async MariaDB() {
    const server = await startMariaDb();
    const connection = await createConnection({ uri: server.url, multipleStatements: true });
    await connection.query(tables('varchar(60)'));
    await connection.end();
    return { server, on: onMySql };
  },
};

/** Resolves with the milliseconds that all took together, and those of this process's processor time. */
async function drive(ids, run) {
  const left = ids.values();
  const cpu = process.cpuUsage();
  const startedAt = performance.now();
  await Promise.all(
    Array.from({ length: concurrent }, async () => {
      for (const id of left) await run(id);
    }),
  );
  const { user, system } = process.cpuUsage(cpu);
  return { ms: performance.now() - startedAt, cpuMs: (user + system) / 1_000 };
}

/** Returns the ratios of one store, in rounds whose order changes: medians. */
async function measure({ store, book, byHand }, { rounds, callbacks }) {
  const { transferCallbackReceiver, transferCallbackSchema } = packageUnderTest;
  await store.migrate();
  const receiver = transferCallbackReceiver({
    store,
    logger: false,
    onSuccess: ({ data }, { tx }) => book(tx, data.id),
    onFailed: () => undefined,
  });
  const receive = (expected) => async (id) => {
    const { outcome, error } = await receiver.receive(JSON.parse(callbackText(id)));
    if (outcome !== expected) throw new Error(`Expected ${expected}, got ${outcome}.`, { cause: error });
  };
  const handle = (id) => byHand(transferCallbackSchema.parse(JSON.parse(callbackText(id))).data.id, book);
  const ratios = { fresh: [], duplicate: [], cpu: [] };
  // The first round warms up.
  for (let round = 0; round <= rounds; round += 1) {
    const ids = [0, 1].map(() => Array.from({ length: callbacks }, () => crypto.randomUUID()));
    const drives = [() => drive(ids[0], receive('processed')), () => drive(ids[1], handle)];
    const results = [];
    for (const which of round % 2 === 0 ? [0, 1] : [1, 0]) results[which] = await drives[which]();
    const [ours, theirs] = results;
    const [again, theirsAgain] = [await drive(ids[0], receive('duplicate')), await drive(ids[1], handle)];
    if (round === 0) continue;
    ratios.fresh.push(theirs.ms / ours.ms);
    ratios.duplicate.push(theirsAgain.ms / again.ms);
    ratios.cpu.push(ours.cpuMs / theirs.cpuMs);
  }
  await receiver.close();
  return Object.fromEntries(Object.entries(ratios).map(([name, values]) => [name, percentile(values, 0.5)]));
}

/** Measures every library on its databases, directly and through a proxy that delays. Resolves with rows of ratios. */
export async function measureSql({ rounds, callbacks, only }) {
  const rows = [];
  for (const [database, start] of Object.entries(databases)) {
    const { server, on } = await start();
    const url = new URL(server.url);
    const proxy = await startNode('support/delay.mjs', [url.port]);
    const delayed = new URL(url);
    delayed.port = String(proxy.ready);
    try {
      for (const [network, at] of Object.entries({ direct: url, delayed })) {
        for (const [library, parts] of Object.entries(on(String(at)))) {
          if (only.test(`${library} ${database}`)) {
            rows.push({ library, database, network, ...(await measure(parts, { rounds, callbacks })) });
          }
          await parts.close();
        }
      }
    } finally {
      await stop(proxy);
      await server.stop();
    }
  }
  return rows;
}
