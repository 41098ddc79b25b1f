// What each route of the benchmark stands: real processes that are killed and frozen, on a real Redis and PostgreSQL.
import { fileURLToPath } from 'node:url';
import { App } from './guarantees/app.mjs';
import { situations } from './guarantees/situations.mjs';
import { startPostgres, startRedis } from './support/databases.mjs';

const rival = (name) => ({ name, file: 'rivals.mjs', args: [name] });

const contenders = [
  { name: 'this package, Redis', file: 'package.mjs', args: ['router', 'ioredis'] },
  { name: 'this package, PostgreSQL', file: 'postgres.mjs', args: ['router'], postgres: true },
  { name: 'by hand: SET NX before, SET after', file: 'by-hand.mjs', args: ['safe', 'ioredis'] },
  { name: 'by hand: one SET NX', file: 'by-hand.mjs', args: ['unsafe', 'ioredis'] },
  { name: 'by hand: PostgreSQL transaction', file: 'postgres.mjs', args: ['same row'], postgres: true },
  rival('powertools'),
  rival('powertools-validating'),
  rival('express-idempotency'),
  rival('node-idempotency'),
];

export const titles = situations.flat().map(({ title }) => title);

/** Puts every contender through every situation. Resolves with `{ name, cells }`, a cell for each of `titles`. */
export async function testGuarantees(only = /(?:)/) {
  return Promise.all(contenders.filter(({ name }) => only.test(name)).map(testContender));
}

async function testContender(contender) {
  const store = contender.postgres ? await startPostgres() : await startRedis();
  const env = contender.postgres ? { POSTGRES_URL: store.url } : { REDIS_PORT: String(store.port) };
  let stopped;
  // A PostgreSQL of the tests cannot be stopped twice.
  const stopStore = () => (stopped ??= store.stop());
  const apps = [];
  try {
    for (let each = 0; each < 3; each += 1) apps.push(await App.start(contender, env));
    const [first, second, victim] = apps;
    const stage = { first, second, victim, stopStore };
    const cells = [];
    for (const group of situations) {
      cells.push(...(await Promise.all(group.map(({ run }) => runSituation(run, stage)))));
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

async function runSituation(run, stage) {
  try {
    return await run(stage);
  } catch (error) {
    return { holds: false, seen: `the test ended: ${error.message}` };
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const { name, cells } of await testGuarantees(new RegExp(process.argv[2] ?? ''))) {
    console.log(`\n${name}`);
    for (const [i, { holds, seen }] of cells.entries()) {
      const mark = holds === undefined ? '–' : holds ? '✓' : '✗';
      console.log(`  ${mark} ${titles[i].padEnd(24)}${seen}`);
    }
  }
  // Clients of the tests' servers may hold the process.
  process.exit();
}
