// Processor time for each delivery, without sockets and without a database. README.md tells how it is measured.
import { basename, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { ask, startNode, stop } from './support/processes.mjs';
import { percentile } from './support/statistics.mjs';

const L1 = 'express.json(), empty route';

/** What is measured. `ofPackage` is measured once for each build of the package. */
const variants = [
  { name: L1, file: 'empty.mjs', kind: 'express' },
  { name: 'node:http, empty listener', file: 'empty.mjs', kind: 'node' },
  { name: 'floor: reads, schema, Map, handler', file: 'layers.mjs', kind: 'map', ofPackage: true },
  { name: 'floor + memory store', file: 'layers.mjs', kind: 'store', ofPackage: true, layer: true },
  { name: 'floor + receive', file: 'layers.mjs', kind: 'receive', ofPackage: true, layer: true },
  { name: 'listener: memory', file: 'package.mjs', kind: 'listener', ofPackage: true },
  { name: 'floor behind Router()', file: 'layers.mjs', kind: 'express-map', ofPackage: true, layer: true },
  { name: 'router: memory', file: 'package.mjs', kind: 'router', ofPackage: true },
];

/**
 * Measures each variant in a process of its own, one after the other in each round. Resolves with rows of the
 * microseconds of processor time per request: the 15th percentile of the rounds, since other work only adds to it.
 */
export async function measureInProcess({ rounds, requests, warmUpRequests, packages, layers }) {
  const rows = [];
  try {
    for (const variant of variants) {
      if (variant.layer === true && !layers) continue;
      for (const directory of variant.ofPackage === true ? packages : packages.slice(0, 1)) {
        const build = variant.ofPackage === true && packages.length > 1 ? basename(resolve(directory)) : undefined;
        const env = { PACKAGE: pathToFileURL(resolve(directory, 'dist/index.js')).href, IN_PROCESS: variant.file };
        const server = await startNode('in-process-server.mjs', [variant.kind], { env });
        rows.push({ name: variant.name, build, server, micros: [] });
      }
    }
    for (const { server } of rows) await ask(server, warmUpRequests);
    for (let round = 0; round < rounds; round += 1) {
      for (const { server, micros } of rows) micros.push(await ask(server, requests));
    }
  } finally {
    for (const { server } of rows) await stop(server);
  }
  const cpuMicros = rows.map(({ micros }) => percentile(micros, 0.15));
  return rows.map(({ name, build }, i) => ({
    name,
    build,
    cpuMicros: cpuMicros[i],
    ratio: cpuMicros[0] / cpuMicros[i],
  }));
}

/** What the package adds to the floor, for each build. */
export function ownShares(rows) {
  const find = (name, build) => rows.find((row) => row.name === name && row.build === build);
  return rows
    .filter(({ name }) => name === 'listener: memory')
    .map(({ build, cpuMicros }) => ({
      build,
      cpuMicros: cpuMicros - find('floor: reads, schema, Map, handler', build).cpuMicros,
    }));
}

function print(rows) {
  const title = ({ name, build }) => (build === undefined ? name : `${name} (${build})`);
  const width = Math.max(...rows.map((row) => title(row).length)) + 2;
  for (const row of rows) {
    console.log(`${title(row).padEnd(width)}${row.cpuMicros.toFixed(1).padStart(6)} µs   / L1 ${row.ratio.toFixed(2)}`);
  }
  for (const { build, cpuMicros } of ownShares(rows)) {
    console.log(`own share of the listener${build === undefined ? '' : ` (${build})`}: ${cpuMicros.toFixed(1)} µs`);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({
    options: {
      rounds: { type: 'string', default: '25' },
      requests: { type: 'string', default: '9600' },
      'warm-up': { type: 'string', default: '115200' },
      package: { type: 'string', multiple: true, default: [fileURLToPath(new URL('..', import.meta.url))] },
      layers: { type: 'boolean', default: false },
    },
  });
  const { rounds, requests } = values;
  console.log(`Node ${process.version}, ${rounds} rounds of ${requests} requests, 15th percentile of processor time`);
  print(
    await measureInProcess({
      rounds: Number(rounds),
      requests: Number(requests),
      warmUpRequests: Number(values['warm-up']),
      packages: values.package,
      layers: values.layers,
    }),
  );
}
