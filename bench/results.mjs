// Measures everything and writes the folder results/. README.md tells how long it takes.
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { testGuarantees } from './guarantees.mjs';
import { measureInProcess } from './in-process.mjs';
import { measureScale } from './scale.mjs';
import { measureSockets } from './sockets.mjs';
import { measureSql } from './sql.mjs';
import { databaseVersions } from './support/databases.mjs';
import { describeMachine, versionOf } from './support/machine.mjs';
import { writePage } from './support/page.mjs';
import { moveToAllCores } from './support/processes.mjs';

const compared = [
  ...['express', 'zod', 'ioredis', 'redis', 'pg', 'postgres', 'mysql2', 'kysely', 'drizzle-orm', 'knex'],
  ...['@aws-lambda-powertools/idempotency', '@node-idempotency/core'],
  ...['express-idempotency', 'express-idempotency-redis-adapter'],
];
const root = fileURLToPath(new URL('..', import.meta.url));
const connections = 32;

const { quick } = parseArgs({ options: { quick: { type: 'boolean', default: false } } }).values;
// Figures of a quick run mean nothing, and must not be committed.
const folder = quick
  ? join(tmpdir(), 'transfer-callbacks-results')
  : fileURLToPath(new URL('results', import.meta.url));

const parts = {
  guarantees: () => testGuarantees({ quick }),
  sockets: () => measureSockets({ rounds: quick ? 1 : 5, seconds: quick ? 0.3 : 2, connections }),
  inProcess: () =>
    measureInProcess({
      rounds: quick ? 5 : 25,
      requests: quick ? 3_200 : 9_600,
      warmUpRequests: quick ? 9_600 : 115_200,
      packages: [root],
    }),
  sql: () => measureSql({ rounds: quick ? 1 : 5, callbacks: quick ? 100 : 600 }),
  scale: () =>
    measureScale({ records: quick ? 10_000 : 1_000_000, rounds: quick ? 1 : 9, requests: quick ? 1_000 : 10_000 }),
};

const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
const versions = { 'transfer-callbacks': version, ...(await databaseVersions()) };
for (const name of compared) versions[name] = versionOf(name);
const results = { machine: describeMachine(), versions, connections };
for (const [name, measure] of Object.entries(parts)) {
  const startedAt = performance.now();
  // The part before may have left this process on one.
  moveToAllCores();
  results[name] = await measure();
  console.log(`${name}: ${((performance.now() - startedAt) / 1_000).toFixed(0)} s`);
}
await mkdir(folder, { recursive: true });
await writeFile(join(folder, 'README.md'), writePage(results));
console.log(`Written to ${folder}`);
// Clients of the tests' servers may hold the process.
process.exit();
