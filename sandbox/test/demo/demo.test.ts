import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { longestLine, root, startProgram } from '../../../test/cli/support.js';

const start = (args: readonly string[], env?: Record<string, string>) =>
  startProgram(join(root, 'sandbox/demo/index.ts'), args, { imports: ['tsx'], ...(env && { env }) });

const rows = [
  '✓ A success            200            paid 15,000      processed',
  '✓ A failure            200            refunded 900     processed',
  '✓ A bank account       200            wired 250,000    processed',
  '✓ Handler fails once   500, 200       error, paid 900  handler_failed, processed',
  '✓ Handler wants later  503, 200       later, paid 900  retry_later, processed',
  '✓ Ten copies together  10 × 200       paid 900         processed, 9 × duplicate',
  '✓ Two attempts lost    2 × lost, 200  paid 900         processed',
  '✓ JSON cut short       400, 200       paid 900         invalid, processed',
  '✓ A contradiction      200, 4 × 422   refunded 900     processed, 4 × conflict',
  '✓ A forgery            401            nothing          unauthorized',
  '✓ No callback          nothing        paid 900         processed',
  '✓ Reconciled first     200            paid 900         processed, duplicate',
];
const rowsOf = (output: string): string[] => output.split('\n').filter((line) => /^[✓✗]/.test(line));

test('npm run demo plays each transfer and a forgery, and ends with 0 if each ended as designed', async () => {
  const { code, out, err } = await start([]).ended;
  expect([code, err, rowsOf(out)]).toEqual([0, '', rows]);
  expect(longestLine(out)).toBeLessThanOrEqual(80);
  expect(out).not.toContain('\u001B');
});

test('npm run demo -- --open shows the same transfers in the console until Ctrl+C', async () => {
  const { said, child, ended } = start(['--open'], { PATH: '/nowhere' });
  await vi.waitUntil(() => said.err.includes('Open the address by hand.'), { timeout: 60_000 });
  const [, url = ''] = /Console {5}(http:\S+)/.exec(said.out) ?? [];
  const stream = await fetch(`${url}events`);
  for await (const chunk of stream.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    expect(chunk).toContain('no callback is sent');
    break;
  }
  child.kill('SIGINT');
  const { code, out } = await ended;
  expect([code, rowsOf(out)]).toEqual([0, rows]);
});

test('npm run demo ends with 1 and prints what was expected where a failed handler is acknowledged', async () => {
  const copy = await mkdtemp(join(tmpdir(), 'transfer-callbacks-demo-'));
  onTestFinished(() => rm(copy, { recursive: true }));
  for (const part of ['package.json', 'tsconfig.json', 'src', 'sandbox']) {
    await cp(join(root, part), join(copy, part), { recursive: true });
  }
  await symlink(join(root, 'node_modules'), join(copy, 'node_modules'));
  const file = join(copy, 'src/core/outcomes.ts');
  const before = await readFile(file, 'utf8');
  const after = before.replace('status: 500', 'status: 200');
  expect(after).not.toBe(before);
  await writeFile(file, after);

  const { status, stdout } = spawnSync('npm', ['run', '--silent', 'demo'], { cwd: copy, encoding: 'utf8' });

  expect(status).toBe(1);
  expect(stdout).toContain(
    '✗ Handler fails once   200            error            handler_failed\n' +
      '    expected           500, 200       error, paid 900  handler_failed, processed\n',
  );
  expect(stdout).toContain('1 of 12 are not as designed.');
});
