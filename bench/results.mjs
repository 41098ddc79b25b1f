// Measures everything and writes the folder results/, or prints one part. README.md tells how long it takes.
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { cpus, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { testGuarantees } from './guarantees.mjs';
import { measureInProcess } from './in-process.mjs';
import { measureScale } from './scale.mjs';
import { measureSockets } from './sockets.mjs';
import { measureSql } from './sql.mjs';
import { databaseVersions } from './support/databases.mjs';
import { sections, writePage } from './support/page.mjs';
import { moveToAllCores } from './support/processes.mjs';

const drivers = ['ioredis', 'redis', 'pg', 'postgres', 'mysql2', 'knex'];
const compared = ['express', 'zod', ...drivers, '@aws-lambda-powertools/idempotency'];
const root = fileURLToPath(new URL('..', import.meta.url));

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string', default: '.' },
    records: { type: 'string', default: '1000000' },
  },
});
const { quick } = values;
const only = new RegExp(values.only);

const parts = {
  guarantees: () => testGuarantees({ only, quick }),
  sockets: () => measureSockets({ rounds: quick ? 1 : 5, seconds: quick ? 0.3 : 2, only }),
  inProcess: () =>
    measureInProcess({
      rounds: quick ? 5 : 25,
      requests: quick ? 3_200 : 9_600,
      warmUpRequests: quick ? 9_600 : 115_200,
      packages: [root],
    }),
  sql: () => measureSql({ rounds: quick ? 1 : 5, callbacks: quick ? 100 : 600, only }),
  scale: () => {
    const records = quick ? 10_000 : Number(values.records);
    return measureScale({ records, rounds: quick ? 1 : 9, requests: quick ? 1_000 : 10_000 });
  },
};

const [part] = positionals;
if (part === undefined) await writeResults();
else console.log(sections[part]({ [part]: await parts[part]() }));
// Clients of the tests' servers may hold the process.
process.exit();

async function writeResults() {
  const results = { machine: describeMachine(), versions: await readVersions() };
  for (const [name, measure] of Object.entries(parts)) {
    const startedAt = performance.now();
    // The part before may have left this process on one.
    moveToAllCores();
    results[name] = await measure();
    console.log(`${name}: ${((performance.now() - startedAt) / 1_000).toFixed(0)} s`);
  }
  // Figures of a quick run mean nothing, and must not be committed.
  const folder = quick ? join(tmpdir(), 'transfer-callbacks-results') : join(root, 'bench/results');
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'README.md'), writePage(results));
  console.log(`Written to ${folder}`);
}

/** Node, the processor and the time: what a figure means nothing without. Names no host. */
function describeMachine() {
  return {
    node: process.version,
    processor: `${cpus().length} × ${cpus()[0].model.trim()}`,
    memory: `${Math.round(totalmem() / 2 ** 30)} GiB`,
    date: new Date().toISOString().slice(0, 10),
  };
}

async function readVersions() {
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
  const versions = { 'transfer-callbacks': version, ...(await databaseVersions()) };
  for (const name of compared) versions[name] = await versionOf(name);
  return versions;
}

/** The version of an installed package. Not every package exports its package.json. */
async function versionOf(name) {
  for (const folder of createRequire(import.meta.url).resolve.paths(name)) {
    const manifest = await readFile(join(folder, name, 'package.json'), 'utf8').catch(() => undefined);
    if (manifest !== undefined) return JSON.parse(manifest).version;
  }
  throw new Error(`${name} is not installed: run npm ci here and in the folder above.`);
}
