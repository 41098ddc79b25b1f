import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { kill, tied } from './support/child.js';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Starts Vitest with an empty PATH. On a busy machine that takes a while. */
const timeout = 180_000;

/** Runs test files on a machine with an empty PATH. */
async function runTests(...files: string[]): Promise<{ exitCode: number; printed: string; complained: string }> {
  const child = tied(
    spawn(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', ...files], {
      cwd: root,
      env: { PATH: '', NO_COLOR: '1' },
      stdio: ['ignore', 'pipe', 'pipe'],
    }),
  );
  onTestFinished(() => kill(child));
  const [printed, complained, [exitCode]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit') as Promise<[number]>,
  ]);
  return { exitCode, printed, complained };
}

test(
  'a run that needs a Redis ends with one sentence before its first test if there is none',
  { timeout },
  async () => {
    const { exitCode, printed, complained } = await runTests('test/stores/redis.test.ts', 'test/stores/memory.test.ts');
    expect(exitCode).toBe(1);
    const sentence =
      'The tests need a redis-server or valkey-server on the PATH: ' +
      'install Redis (apt install redis-server, brew install redis) or Valkey, or set REDIS_SERVER_BIN.\n';
    expect(complained.split(sentence)).toHaveLength(2);
    expect(complained).not.toContain('    at ');
    expect(printed).not.toMatch(/Test Files|✓|TypeError/);
  },
);

test('a run that needs no Redis does without', { timeout }, async () => {
  const { exitCode, printed } = await runTests('test/core/timers.test.ts');
  expect(printed).toMatch(/Test Files +\d passed/);
  expect(exitCode).toBe(0);
});

test('the files of test:quick start no Redis, no PostgreSQL and no browser', async () => {
  const { scripts } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>;
  };
  const paths = scripts['test:quick']?.split(' ').filter((word) => word.startsWith('test/')) ?? [];
  expect(paths.length).toBeGreaterThan(1);
  for (const path of paths) {
    const names = path.endsWith('.ts') ? [''] : await readdir(join(root, path));
    for (const name of names) {
      const text = await readFile(join(root, path, name), 'utf8');
      expect([path, name, /support\/(?:redis|postgres|browser)\b/.exec(text)?.[0]]).toEqual([path, name, undefined]);
    }
  }
});
