// Compares servers by the ratios of their throughput, side by side in one run. README.md tells how and why.
import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startPostgres, startRedis } from './support/databases.mjs';
import { measureLoad, warmUp } from './support/load.mjs';
import { canPin, moveToCore1, startNode, stop } from './support/processes.mjs';
import { median, medianOf } from './support/statistics.mjs';
import { columns, variants } from './variants.mjs';

/**
 * Measures the variants at one number of connections after the other. Resolves with `{ connections, rows }` for each;
 * a row holds the medians of its rounds, and its ratios to what `columns` name as median, least and most.
 */
export async function measureSockets({ rounds, seconds, connectionCounts, only, by }) {
  const chosen = variants.filter(({ name }) => only.test(name));
  // Started before this process moves, so that PostgreSQL may use both cores, as the server under test does not.
  const postgres = chosen.some((variant) => variant.postgres) ? await startPostgres() : undefined;
  moveToCore1();
  const redis = await startRedis();
  const env = { REDIS_PORT: String(redis.port), ...(postgres && { POSTGRES_URL: postgres.url }) };
  const processes = [];
  const start = async (...args) => {
    const started = await startNode(...args);
    processes.push(started);
    return started;
  };
  try {
    const generator = await start('generator.mjs');
    const servers = [];
    for (const { name, file, args } of chosen) {
      servers.push({ name, server: await start(`servers/${file}`, args, { env, core: 0 }) });
    }
    for (const { server } of servers) {
      await warmUp(() => measureLoad(generator, [server], 32, 500 * seconds), 30_000, 5_000 * seconds);
    }
    const tables = [];
    for (const connections of connectionCounts) {
      const results = new Map(servers.map(({ name }) => [name, []]));
      for (let round = 0; round < rounds; round += 1) {
        for (const { name, server } of servers) {
          results.get(name).push(await measureLoad(generator, [server], connections, 1_000 * seconds));
          await redis.command('FLUSHALL', 'SYNC');
        }
      }
      tables.push({ connections, rows: chosen.map((variant) => toRow(variant, results, by)) });
    }
    return tables;
  } finally {
    for (const each of processes) await stop(each);
    await redis.stop();
    await postgres?.stop();
  }
}

function toRow(variant, results, by) {
  const own = results.get(variant.name);
  const fields = ['perSecond', 'cpuMicros', 'p50Ms', 'p99Ms', 'generatorBusy'];
  return {
    name: variant.name,
    own: variant.own === true,
    ...Object.fromEntries(fields.map((field) => [field, medianOf(own, field)])),
    ratios: columns.map(({ baseOf }) => toRatio(own, results.get(baseOf(variant)), by)),
  };
}

/** The ratio of each round. Processor time tells how fast a server is too, and better where other work disturbs. */
function toRatio(own, base, by) {
  if (base === undefined || own === base) return undefined;
  const speed = by === 'cpu' ? ({ cpuMicros }) => 1 / cpuMicros : ({ perSecond }) => perSecond;
  const ratios = own.map((result, round) => speed(result) / speed(base[round]));
  return { median: median(ratios), least: Math.min(...ratios), most: Math.max(...ratios) };
}

function print({ connections, rows }) {
  const widths = [34, 7, 8, 8, 8, 6, ...columns.map(() => 19)];
  const line = (cells) =>
    console.log(cells.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]) : cell.padStart(widths[i]))).join(''));
  console.log(`\n${connections} connection${connections === 1 ? '' : 's'}`);
  line(['', 'per s', 'cpu µs', 'p50 ms', 'p99 ms', 'load', ...columns.map(({ title }) => title)]);
  for (const { name, perSecond, cpuMicros, p50Ms, p99Ms, generatorBusy, ratios } of rows) {
    const figures = [perSecond.toFixed(0), cpuMicros.toFixed(0), p50Ms.toFixed(2), p99Ms.toFixed(2)];
    const range = (ratio) =>
      ratio === undefined ? '' : `${ratio.median.toFixed(2)} (${ratio.least.toFixed(2)}-${ratio.most.toFixed(2)})`;
    line([name, ...figures, `${(100 * generatorBusy).toFixed(0)}%`, ...ratios.map(range)]);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({
    options: {
      rounds: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '2' },
      connections: { type: 'string', default: '1,32,256' },
      only: { type: 'string', default: '' },
      by: { type: 'string', default: 'throughput' },
    },
  });
  console.log(`Node ${process.version}, ${cpus().length} × ${cpus()[0].model}`);
  console.log(canPin ? 'Servers on core 0; load and Redis on core 1' : 'Not pinned');
  const tables = await measureSockets({
    rounds: Number(values.rounds),
    seconds: Number(values.seconds),
    connectionCounts: values.connections.split(',').map(Number),
    only: new RegExp(values.only),
    by: values.by,
  });
  for (const table of tables) print(table);
  // Clients of the tests' servers may hold the process.
  process.exit();
}
