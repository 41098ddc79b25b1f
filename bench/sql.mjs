// Callbacks through each SQL library, beside the same transaction by hand. README.md tells how it is measured.
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { createConnection } from 'mysql2/promise';
import { startMariaDb } from '../test/support/servers/mysql.ts';
import { startPostgres } from './support/databases.mjs';
import { onMySql, onPostgres } from './servers/sql-libraries.mjs';
import { startNode, stop } from './support/processes.mjs';
import { concurrent, measure, print } from './support/stores.mjs';

const tables = (id) =>
  `CREATE TABLE booked (id ${id} PRIMARY KEY, times int); CREATE TABLE recorded (id ${id} PRIMARY KEY, fingerprint text)`;

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

/** Measures every library on its databases, directly and through a proxy that delays. Resolves with rows of ratios. */
export async function measureSql({ rounds, callbacks, only = /./ }) {
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

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({
    options: {
      rounds: { type: 'string', default: '5' },
      callbacks: { type: 'string', default: '600' },
      only: { type: 'string', default: '.' },
    },
  });
  const { rounds, callbacks, only } = values;
  console.log(
    `Node ${process.version}, medians of ${rounds} rounds of ${callbacks} callbacks, ${concurrent} at a time, pool of 10`,
  );
  const options = { rounds: Number(rounds), callbacks: Number(callbacks), only: new RegExp(only) };
  for (const { library, database, network, ...ratios } of await measureSql(options)) {
    print(`${library}, ${database}, ${network}`, ratios);
  }
}
