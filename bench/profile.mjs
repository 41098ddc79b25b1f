// Where the processor time of a delivery goes, layer by layer. README.md tells how it is measured.
import { fileURLToPath } from 'node:url';
import { findBase, measureRounds, startServers, toCpuMicros } from './in-process.mjs';
import { ask } from './support/processes.mjs';
import { layers } from './support/profiler.mjs';
import { toMarkdown } from './support/tables.mjs';

const only = /^(express\.json.*|(router|listener): (memory|ioredis|node-redis)|by hand, safe: (ioredis|node-redis))$/;

/** Resolves with rows of the processor time of a delivery in microseconds, and the share of each layer in it. */
export async function measureProfile({ rounds, requests, warmUpRequests }) {
  const packages = [fileURLToPath(new URL('..', import.meta.url))];
  const started = await startServers({ packages, layers: false, redis: true, only });
  const { rows, redis, end } = started;
  try {
    await measureRounds(started, { rounds, requests, warmUpRequests });
    const profiled = [];
    for (const { name, client, server, micros } of rows) {
      const shares = await ask(server, { count: rounds * requests, profiled: true });
      await redis.command('FLUSHALL', 'SYNC');
      // The profiler slows everything down: its shares are of the time that is taken without it.
      profiled.push({ name, client, cpuMicros: toCpuMicros(micros), shares });
    }
    return profiled;
  } finally {
    await end();
  }
}

/**
 * The rows as a table, with their ratios to L1 or to the route by hand on the same client, and what the ratios would be if
 * the package's own code took no time.
 */
export function toTable(rows) {
  const toCells = ({ name, client, cpuMicros, shares }) => {
    const base = findBase(rows, { client });
    const ratios = [cpuMicros, cpuMicros * (1 - shares.route)].map((micros) => (base.cpuMicros / micros).toFixed(2));
    const parts = layers.map((layer) => (cpuMicros * shares[layer]).toFixed(1));
    return [name, cpuMicros.toFixed(1), ...(name === base.name ? ['', ''] : ratios), ...parts];
  };
  return {
    title: 'Processor time of a delivery by layer, in µs',
    columns: ['', 'whole', 'ratio', 'at most', ...layers],
    rows: rows.map(toCells),
    note:
      '`ratio`: to the empty route, or to the route by hand on the same client. `at most`: what it would be if the code of ' +
      'the package took no time. `route`: the route by hand or the package, with its `JSON.parse`. `Express`: all that it ' +
      'depends on, with the `JSON.parse` of `express.json()`. `Node`: node:http, streams, sockets and the event loop. ' +
      '`load`: what sends the requests. The whole is processor time with the helper threads of V8; the shares are those of ' +
      'the main thread.',
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  console.log(toMarkdown(toTable(await measureProfile({ rounds: 15, requests: 6_400, warmUpRequests: 64_000 }))));
  // Clients of the tests' servers may hold the process.
  process.exit();
}
