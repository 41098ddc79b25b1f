// Processor time for each delivery, without sockets. README.md tells how it is measured.
import { basename, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { ask, moveToCore1, percentile, startNode, stop } from './support/processes.mjs';
import { L1 } from './sockets.mjs';

const floor = 'floor: reads, schema, Map, handler';
const listener = 'listener: memory';

/** `own` is measured once for each build of the package. */
const servers = [
  { name: L1, file: 'empty.mjs', args: ['express'] },
  { name: 'node:http, empty listener', file: 'empty.mjs', args: ['node'] },
  { name: floor, file: 'empty.mjs', args: ['floor'], own: true },
  { name: listener, file: 'package.mjs', args: ['listener'], own: true },
  { name: 'router: memory', file: 'package.mjs', args: ['router'], own: true },
];

/**
 * Measures each server in its own process, which all take their turn in every round. Resolves with rows of the
 * microseconds of processor time per request, and the ratio to L1.
 */
export async function measureInProcess({ rounds, requests, warmUpRequests, packages }) {
  moveToCore1();
  const rows = [];
  try {
    for (const { name, file, args, own } of servers) {
      for (const directory of own ? packages : packages.slice(0, 1)) {
        const env = { PACKAGE: pathToFileURL(resolve(directory, 'dist/index.js')).href, IN_PROCESS: file };
        const server = await startNode('in-process-server.mjs', args, { env, core: 0 });
        const build = own && packages.length > 1 ? basename(resolve(directory)) : undefined;
        rows.push({ name, build, server, micros: [] });
      }
    }
    for (const { server } of rows) await ask(server, { count: warmUpRequests });
    for (let round = 0; round < rounds; round += 1) {
      for (const { server, micros } of rows) micros.push(await ask(server, { count: requests }));
    }
  } finally {
    for (const { server } of rows) await stop(server);
  }
  // The 15th percentile of the rounds, since other work only adds to it.
  const measured = rows.map(({ name, build, micros }) => ({ name, build, cpuMicros: percentile(micros, 0.15) }));
  const [base] = measured;
  return measured.map((row) => ({ ...row, ratio: base.cpuMicros / row.cpuMicros }));
}

/** What the package adds to the floor, for each build. */
export function ownShares(rows) {
  const find = (name, build) => rows.find((row) => row.name === name && row.build === build);
  return rows
    .filter(({ name }) => name === listener)
    .map(({ build, cpuMicros }) => ({ build, cpuMicros: cpuMicros - find(floor, build).cpuMicros }));
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
    }),
  );
}
