// How a reconciliation ends: without ids, without a reader, and by a signal.
import { spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, inject, test, vi } from 'vitest';
import { readText } from '../docs/pages.js';
import { startApp } from './app-support.js';
import { objects } from './support.js';

/** An app with some transfers whose callback never came, and how to reconcile them. */
async function startOpen(count: number, handlers?: string) {
  const app = await startApp(handlers);
  const externalIds = Array.from({ length: count }, (_, index) => `no-callback-${index + 1}`);
  const ids: string[] = [];
  for (const externalId of externalIds) ids.push(await app.transfer(externalId));
  const states = () => Promise.all(ids.map(async (id) => (await app.receiver.inspect(id)).state));
  return { cwd: app.cwd, reconcile: () => app.reconcile(externalIds), states };
}

/** The handler writes that it has begun, and ends when the file `done` is there. */
const untilDone = `
  async onSuccess({ data }) {
    console.log('Begun ' + data.externalId);
    const { existsSync } = await import('node:fs');
    while (!existsSync('done')) await new Promise((resolve) => setTimeout(resolve, 20));
    console.log('Handled ' + data.externalId);
  },
  onFailed() {},`;

test('no open transfer is a good night: a summary, and exit code 0', async () => {
  const { reconcile } = await startApp();
  const piped = await reconcile(['', '  ']).ended;
  expect(piped).toEqual({ code: 0, out: '{"type":"summary","notRead":0}\n', err: '' });
  const shown = await reconcile([], { terminal: true }).ended;
  expect([shown.code, shown.out]).toEqual([0, 'No ids on standard input\n']);
});

test('the documented line fails if its query fails', async () => {
  const { cwd } = await startApp();
  const [, lines = ''] = /^(set -o pipefail.*?)^```$/ms.exec(readText('docs/reconciliation.md')) ?? [];
  const script = `psql() { return 3; }
    npx() { shift 2; "${process.execPath}" "${inject('cli')}" "$@"; }
    ${lines}`;
  const { status, stdout } = spawnSync('bash', ['-c', script], { cwd });
  expect([status, String(stdout)]).toEqual([3, '{"type":"summary","notRead":0}\n']);
});

test('readers of both outputs that have gone leave no transfer unhandled', async () => {
  const { reconcile, states } = await startOpen(5);
  const { child, ended } = reconcile();
  child.stdout.once('data', () => {
    child.stdout.destroy();
    child.stderr.destroy();
  });
  expect((await ended).code).toBe(0);
  expect(await states()).toEqual(Array(5).fill('settled'));
});

test.each(['SIGINT', 'SIGTERM'] as const)('%s ends the pass when the running handler has finished', async (signal) => {
  const { cwd, reconcile, states } = await startOpen(2, untilDone);
  const { child, said, ended } = reconcile();
  await vi.waitUntil(() => said.err.includes('Begun'), { timeout: 60_000 });
  // npx sends the SIGINT of Ctrl+C twice.
  child.kill(signal);
  child.kill(signal);
  await vi.waitUntil(() => said.err.includes('Ending'), { timeout: 60_000 });
  await writeFile(join(cwd, 'done'), '');
  const { code, out, err } = await ended;
  expect(code).toBe(1);
  expect(err.split('\n')).toEqual([
    'Begun no-callback-1',
    'Ending: the running handler is waited for. Send the signal again to end immediately.',
    'Handled no-callback-1',
    '',
  ]);
  expect(objects(out)).toMatchObject([
    { result: 'processed' },
    { type: 'summary', processed: 1, notRead: 1, stopped: 'aborted' },
  ]);
  expect(await states()).toEqual(['settled', 'free']);
});

test('a signal that is sent again ends the command', async () => {
  const { reconcile } = await startOpen(1, untilDone);
  const { child, said, ended } = reconcile();
  await vi.waitUntil(() => said.err.includes('Begun'), { timeout: 60_000 });
  child.kill('SIGTERM');
  await vi.waitUntil(() => said.err.includes('Ending'), { timeout: 60_000 });
  const again = setInterval(() => child.kill('SIGTERM'), 100);
  const { code } = await ended;
  clearInterval(again);
  expect(code).toBe(143);
});
