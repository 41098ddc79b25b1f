import { readFileSync } from 'node:fs';
import type { TestProject } from 'vitest/node';
import { findBinary } from './redis.js';

/** Ends a run before its first test if one of its files needs a Redis and this machine has none. */
export default async function requireRedis({ vitest }: TestProject): Promise<void> {
  const isNeeded = vitest.state.getPaths().some((path) => readFileSync(path, 'utf8').includes('/support/redis.js'));
  if (!isNeeded) return;
  try {
    await findBinary();
  } catch (error) {
    // Vitest would add to a rejection that it has found no test files.
    console.error((error as Error).message);
    process.exit(1);
  }
}
