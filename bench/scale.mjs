// What many remembered ids, many workers and many callbacks at one moment cost.
import { parseArgs } from 'node:util';
import { fileURLToPath } from 'node:url';
import { measureBursts } from './scale/bursts.mjs';
import { measureMemory } from './scale/memory.mjs';
import { measurePostgres } from './scale/postgres.mjs';
import { measureRedis } from './scale/redis.mjs';
import { measureWorkers } from './scale/workers.mjs';
import { moveToAllCores } from './support/processes.mjs';
import { toMarkdown } from './support/tables.mjs';

const parts = {
  memory: measureMemory,
  postgres: measurePostgres,
  workers: measureWorkers,
  redis: measureRedis,
  bursts: measureBursts,
};

export const scaleParts = Object.keys(parts);

/** Measures the parts named, all by default. Resolves with their tables. */
export async function measureScale({ names = scaleParts, ...options }) {
  const tables = [];
  for (const [name, measure] of Object.entries(parts)) {
    if (!names.includes(name)) continue;
    // The part before may have left this process on one.
    moveToAllCores();
    tables.push(...(await measure(options)));
  }
  return tables;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values, positionals } = parseArgs({
    options: {
      quick: { type: 'boolean', default: false },
      'redis-ids': { type: 'string', default: '1000000' },
      'postgres-rows': { type: 'string', default: '1000000' },
    },
    allowPositionals: true,
  });
  const unknown = positionals.find((name) => !(name in parts));
  if (unknown !== undefined) throw new Error(`Expected a part to be one of ${scaleParts.join(', ')}, got ${unknown}.`);
  const tables = await measureScale({
    names: positionals.length === 0 ? undefined : positionals,
    quick: values.quick,
    redisIds: Number(values['redis-ids']),
    postgresRows: Number(values['postgres-rows']),
  });
  for (const table of tables) console.log(`\n${toMarkdown(table)}`);
  // Clients of the tests' servers may hold the process.
  process.exit();
}
