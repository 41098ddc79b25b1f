// Measures everything once and writes the folder results/. README.md tells how long it takes.
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { testGuarantees } from './guarantees.mjs';
import { measureInProcess } from './in-process.mjs';
import { measureProfile } from './profile.mjs';
import { measureScale, scaleParts } from './scale.mjs';
import { drawChart, themes } from './support/chart.mjs';
import { databaseVersions } from './support/databases.mjs';
import { describeMachine, versionOf } from './support/machine.mjs';
import { writePage } from './support/page.mjs';
import { moveToAllCores } from './support/processes.mjs';
import { measureSockets } from './sockets.mjs';

const packages = ['express', 'zod', 'ioredis', 'redis', 'pg'];
const rivals = [
  '@aws-lambda-powertools/idempotency',
  '@node-idempotency/core',
  'express-idempotency',
  'express-idempotency-redis-adapter',
];
const root = fileURLToPath(new URL('..', import.meta.url));

const parts = {
  'in-process': (quick) =>
    measureInProcess({
      rounds: quick ? 5 : 25,
      requests: quick ? 3_200 : 9_600,
      warmUpRequests: quick ? 9_600 : 115_200,
      packages: [root],
      layers: true,
    }),
  profile: (quick) =>
    measureProfile({
      rounds: quick ? 3 : 15,
      requests: quick ? 3_200 : 6_400,
      warmUpRequests: quick ? 9_600 : 64_000,
    }),
  guarantees: (quick) => testGuarantees({ quick }),
  sockets: (quick) =>
    measureSockets({
      rounds: quick ? 1 : 5,
      seconds: quick ? 0.3 : 2,
      connectionCounts: [32],
      only: /(?:)/,
      by: 'throughput',
    }),
  ...Object.fromEntries(scaleParts.map((name) => [name, (quick) => measureScale({ names: [name], quick, ...sizes })])),
};
/** No part takes half as long, even on a slow machine and with ten million records. */
const mostMinutes = 20;

const { values: options, positionals: names } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    render: { type: 'boolean', default: false },
    out: { type: 'string' },
    'redis-ids': { type: 'string', default: '1000000' },
    'postgres-rows': { type: 'string', default: '1000000' },
  },
  allowPositionals: true,
});
const sizes = { redisIds: Number(options['redis-ids']), postgresRows: Number(options['postgres-rows']) };
const unknown = names.find((name) => !(name in parts));
if (unknown !== undefined)
  throw new Error(`Expected a part to be one of ${Object.keys(parts).join(', ')}, got ${unknown}.`);
// Figures of a quick run mean nothing, and must not be committed.
const quickFolder = join(tmpdir(), 'transfer-callbacks-results');
const folder = options.out ?? (options.quick ? quickFolder : fileURLToPath(new URL('results', import.meta.url)));
const dataFile = (name) => join(folder, 'data', `${name}.json`);

async function readPackageVersion() {
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
  return version;
}

async function describeRun() {
  const versions = { 'transfer-callbacks': await readPackageVersion(), ...(await databaseVersions()) };
  for (const name of [...packages, ...rivals]) versions[name] = versionOf(name);
  return { ...describeMachine(), versions };
}

async function runPart(name, run) {
  const startedAt = performance.now();
  process.stdout.write(`${name} … `);
  // The part before may have left this process on one.
  moveToAllCores();
  const limit = setTimeout(() => {
    // What it has started would disturb the parts that follow.
    console.error(`took over ${mostMinutes} minutes. Again: npm run results -- ${name}, and the parts after it`);
    process.exit(1);
  }, 60_000 * mostMinutes);
  let figures;
  try {
    figures = await parts[name](options.quick);
  } finally {
    clearTimeout(limit);
  }
  await writeFile(dataFile(name), `${JSON.stringify({ run, figures }, undefined, 2)}\n`);
  console.log(`${((performance.now() - startedAt) / 1_000).toFixed(0)} s`);
}

/** What the parts have written, now or before. */
async function readParts() {
  const data = {};
  for (const name of Object.keys(parts)) {
    try {
      data[name] = JSON.parse(await readFile(dataFile(name), 'utf8'));
    } catch (error) {
      if (error.code !== 'ENOENT') throw error;
    }
  }
  return data;
}

await mkdir(join(folder, 'data'), { recursive: true });
const failed = [];
if (!options.render) {
  const run = await describeRun();
  for (const name of Object.keys(parts).filter((each) => names.length === 0 || names.includes(each))) {
    try {
      await runPart(name, run);
    } catch (error) {
      console.error(error);
      failed.push(name);
    }
  }
}
const data = await readParts();
if (data.sockets !== undefined) {
  for (const theme of Object.keys(themes)) {
    await writeFile(join(folder, `chart-${theme}.svg`), drawChart(data, theme));
  }
}
await writeFile(join(folder, 'README.md'), writePage(data));
console.log(`Written to ${folder}`);
if (failed.length > 0) console.error(`Again: npm run results -- ${failed.join(' ')}`);
// Clients of the tests' servers may hold the process.
process.exit(failed.length > 0 ? 1 : 0);
