import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { kill, tied } from './support/child.js';

const root = fileURLToPath(new URL('..', import.meta.url));

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

test('a run that needs a Redis ends with one sentence before its first test if there is none', async () => {
  const { exitCode, printed, complained } = await runTests('test/stores/redis.test.ts', 'test/stores/memory.test.ts');
  expect(exitCode).toBe(1);
  const sentence =
    'The tests need a redis-server or valkey-server on the PATH: ' +
    'install Redis (apt install redis-server, brew install redis) or Valkey, or set REDIS_SERVER_BIN.\n';
  expect(complained.split(sentence)).toHaveLength(2);
  expect(complained).not.toContain('    at ');
  expect(printed).not.toMatch(/Test Files|✓|TypeError/);
});

test('a run that needs no Redis does without', async () => {
  const { exitCode, printed } = await runTests('test/core/timers.test.ts');
  expect(printed).toMatch(/Test Files +\d passed/);
  expect(exitCode).toBe(0);
});
