// Callbacks through each SQL library, beside the same transaction by hand. README.md tells how it is measured.
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { createConnection } from 'mysql2/promise';
import { startMariaDb } from '../test/support/servers/mysql.ts';
import { startPostgres } from './support/databases.mjs';
import { callbackText } from './callback.mjs';
import { packageUnderTest } from './package.mjs';
import { onMySql, onPostgres } from './servers/sql-libraries.mjs';
import { startNode, stop } from './support/processes.mjs';
import { median } from './support/statistics.mjs';

const concurrent = 32;
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

/** Returns the ratios of one library, in rounds whose order changes: medians. */
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
  return Object.fromEntries(Object.entries(ratios).map(([name, values]) => [name, median(values)]));
}

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
  for (const { library, database, network, fresh, duplicate, cpu } of await measureSql(options)) {
    const name = `${library}, ${database}, ${network}`.padEnd(34);
    console.log(
      `${name} fresh ${fresh.toFixed(2)}   duplicate ${duplicate.toFixed(2)}   processor time ${cpu.toFixed(2)}`,
    );
  }
}
