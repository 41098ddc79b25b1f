// Which faults each route of the benchmark survives: real processes that are killed and frozen, on a real Redis and PostgreSQL.
import { fileURLToPath } from 'node:url';
import { App } from './guarantees/app.mjs';
import { situations } from './guarantees/situations.mjs';
import { startPostgres, startRedis } from './support/databases.mjs';

const rival = (name) => ({ name, file: 'rivals.mjs', args: [name] });

const contenders = [
  { name: 'this package, Redis', file: 'package.mjs', args: ['router', 'node-redis'] },
  { name: 'this package, PostgreSQL', file: 'postgres.mjs', args: ['router'], postgres: true },
  { name: 'by hand: SET NX before, SET after', file: 'by-hand.mjs', args: ['safe', 'node-redis'] },
  { name: 'by hand: one SET NX', file: 'by-hand.mjs', args: ['unsafe', 'node-redis'] },
  { name: 'by hand: PostgreSQL transaction', file: 'postgres.mjs', args: ['same row'], postgres: true },
  rival('powertools'),
  rival('powertools-validating'),
  rival('express-idempotency'),
  rival('node-idempotency'),
];

/**
 * Puts every contender through every situation. Resolves with `{ name, cells }`; a cell is `{ title, holds, seen }`.
 * `quick` leaves out the situations that wait for the service's first retry.
 */
export async function testGuarantees({ only = /(?:)/, quick = false } = {}) {
  const groups = situations.filter(({ slow }) => !(quick && slow)).map(({ group }) => group);
  return Promise.all(contenders.filter(({ name }) => only.test(name)).map((each) => testContender(each, groups)));
}

async function testContender(contender, groups) {
  const store = contender.postgres ? await startPostgres() : await startRedis();
  const env = contender.postgres ? { POSTGRES_URL: store.url } : { REDIS_PORT: String(store.port) };
  let stopped;
  // A PostgreSQL of the tests cannot be stopped twice.
  const stopStore = () => (stopped ??= store.stop());
  const apps = [];
  try {
    for (let each = 0; each < 3; each += 1) apps.push(await App.start(contender, env));
    const [first, second, victim] = apps;
    // Without the transaction of a database nothing takes back what a run of the handler has written.
    const countWrites = async ({ data: { id, externalId } }) => {
      if (!contender.postgres) return first.runs(id) + second.runs(id);
      return (await store.pool().query('SELECT FROM ledger WHERE payout = $1', [externalId])).rowCount;
    };
    const stage = { first, second, victim, countWrites, stopStore };
    const cells = [];
    for (const group of groups) {
      cells.push(...(await Promise.all(group.map((situation) => runSituation(situation, stage)))));
    }
    return { name: contender.name, cells };
  } finally {
    for (const app of apps) {
      app.signal('SIGCONT');
      await app.kill();
    }
    await stopStore();
  }
}

async function runSituation({ title, run }, stage) {
  try {
    return { title, ...(await run(stage)) };
  } catch (error) {
    return { title, holds: false, seen: `the test ended: ${error.message}` };
  }
}

export const markOf = (holds) => (holds === undefined ? '–' : holds ? '✓' : '✗');

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const { name, cells } of await testGuarantees({ only: new RegExp(process.argv[2] ?? '') })) {
    console.log(`\n${name}`);
    for (const { title, holds, seen } of cells) console.log(`  ${markOf(holds)} ${title.padEnd(24)}${seen}`);
  }
  // Clients of the tests' servers may hold the process.
  process.exit();
}
