import { spawnSync } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { appendFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, inject, onTestFinished, test, vi } from 'vitest';
import { readText } from '../docs/pages.js';
import { startMerchant } from '../../sandbox/test/service/support.js';
import { startService } from '../client/support.js';
import { folderOf, reconcile, startApp, toConfig } from './app-support.js';
import { longestLine, objects } from './support.js';

/** The folder of an app whose service refuses every query with `status`, and what it received. */
async function startBroken(status: number, headers: Record<string, string> = {}, handlers?: string) {
  const body = '{"error":true,"statusCode":0,"message":"Key revoked","data":null}';
  const { baseUrl, received } = await startService([[status, body, headers]]);
  return { cwd: await folderOf(await toConfig('any:', baseUrl, handlers)), received };
}

/** An app with some transfers whose callback never came, and how to reconcile them. */
async function startOpen(count: number, handlers?: string) {
  const app = await startApp(handlers);
  const externalIds = Array.from({ length: count }, (_, index) => `no-callback-${index + 1}`);
  const ids: string[] = [];
  for (const externalId of externalIds) ids.push(await app.transfer(externalId));
  const states = () => Promise.all(ids.map(async (id) => (await app.receiver.inspect(id)).state));
  return { cwd: app.cwd, startReconcile: () => app.startReconcile(externalIds), states };
}

/** Starts to reconcile these many transfers, and waits until the handler of the first one runs. */
async function startRunning(count: number, more = '') {
  const { cwd, startReconcile, states } = await startOpen(count, untilDone);
  await appendFile(join(cwd, 'transfer-callbacks.config.mjs'), more);
  const { child, said, ended } = startReconcile();
  await vi.waitUntil(() => said.err.includes('Begun'), { timeout: 60_000 });
  return { cwd, child, said, ended, states };
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

test('reconcile runs the handler of the app for what was not handled, once, and prints an object for each', async () => {
  const app = await startApp();
  const { url: elsewhere } = await startMerchant();
  await app.transfer('success-1');
  const missed = await app.transfer('no-callback-2');
  await app.transfer('query-lags-3', elsewhere);
  const ids = ['success-1', '  no-callback-2  ', '', 'query-lags-3', 'success-1'];
  const { code, out, err } = await app.reconcile(ids);
  expect([code, err]).toEqual([0, 'Handled no-callback-2\n']);
  expect(objects(out)).toEqual([
    { type: 'transfer', id: 'success-1', result: 'duplicate', status: 'SUCCESS' },
    { type: 'transfer', id: 'no-callback-2', result: 'processed', status: 'SUCCESS' },
    { type: 'transfer', id: 'query-lags-3', result: 'pending', status: 'PENDING' },
    { type: 'summary', duplicate: 1, processed: 1, pending: 1, notRead: 0 },
  ]);
  const again = await app.reconcile([missed]);
  expect([again.code, again.err, objects(again.out)[0]]).toEqual([
    0,
    '',
    { type: 'transfer', id: missed, result: 'duplicate', status: 'SUCCESS' },
  ]);
});

test('unknown transfers, ids that cannot be asked for and handlers that throw are exit code 1', async () => {
  const app = await startApp("onSuccess() { throw new Error('The books are closed'); }, onFailed() {},");
  await app.transfer('no-callback-1');
  // More ids that cannot be asked for than failures that end a run.
  const ids = [...Array.from({ length: 11 }, (_, index) => `a/${index}`), 'nobody', 'no-callback-1'];
  const { code, out } = await app.reconcile(ids);
  expect(code).toBe(1);
  expect(objects(out).slice(-3)).toMatchObject([
    { id: 'nobody', result: 'unknown', httpStatus: 404 },
    { id: 'no-callback-1', result: 'failed', code: 'NOT_HANDLED', message: expect.stringContaining('books') as string },
    { type: 'summary', unknown: 1, failed: 12, notRead: 0 },
  ]);
});

test('on a terminal reconcile prints a row for each in 80 columns, and a progress line', async () => {
  const app = await startApp();
  await app.transfer('success-1');
  const ids = ['success-1', 'nobody\u001b[2J', 'x'.repeat(200)];
  const { code, out, err } = await app.reconcile(ids, { terminal: true });
  expect(code).toBe(1);
  expect(out.split('\n')).toEqual([
    'duplicate  success-1  SUCCESS',
    expect.stringMatching(/^failed {5}nobody\\u\{1b\}\[2J {2}An id is 1 to 255 characters/),
    expect.stringMatching(/^unknown {4}x+…$/),
    '1 duplicate, 1 failed, 1 unknown',
    '',
  ]);
  expect(longestLine(out)).toBeLessThanOrEqual(80);
  expect(err).toContain('\r\u001b[K1 of 3: 1 duplicate, 2 not read');
  expect(err.endsWith('\r\u001b[K')).toBe(true);
});

test('with --json reconcile prints JSON on a terminal, too', async () => {
  const { cwd } = await startBroken(404);
  const { out } = await reconcile(['a'], { cwd, terminal: true }, '--json');
  expect(objects(out)).toMatchObject([
    { id: 'a', result: 'unknown' },
    { type: 'summary', unknown: 1 },
  ]);
});

test('on a terminal reconcile shows why it stopped', async () => {
  const { cwd } = await startBroken(503, { 'Retry-After': '3600' });
  const ids = Array.from({ length: 20 }, (_, index) => `payout-${index}`);
  const { out } = await reconcile(ids, { cwd, terminal: true });
  expect(out).toMatch(/\nStopped: unavailable\n1 failed, 19 not read\n$/);
});

test('no open transfer is a good night: a summary, and exit code 0', async () => {
  const { reconcile } = await startApp();
  const piped = await reconcile(['', '  ']);
  expect(piped).toEqual({ code: 0, out: '{"type":"summary","notRead":0}\n', err: '' });
  const shown = await reconcile([], { terminal: true });
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
  const { startReconcile, states } = await startOpen(5);
  const { child, ended } = startReconcile();
  child.stdout.once('data', () => {
    child.stdout.destroy();
    child.stderr.destroy();
  });
  expect((await ended).code).toBe(0);
  expect(await states()).toEqual(Array(5).fill('handled'));
});

test.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
  '%s ends the run when the running handler has finished',
  async (signal) => {
    const { cwd, child, said, ended, states } = await startRunning(2);
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
    expect(await states()).toEqual(['handled', 'free']);
  },
);

test('a signal that is sent again ends the command', async () => {
  const { child, said, ended } = await startRunning(1);
  child.kill('SIGTERM');
  await vi.waitUntil(() => said.err.includes('Ending'), { timeout: 60_000 });
  const again = setInterval(() => child.kill('SIGTERM'), 100);
  const { code } = await ended;
  clearInterval(again);
  expect(code).toBe(143);
});

test('standard input that is no pipe and no file is a mistake', async () => {
  const { cwd } = await startApp();
  for (const path of ['/dev/null', '/']) {
    const stdin = openSync(path, 'r');
    onTestFinished(() => {
      closeSync(stdin);
    });
    const { status, stdout, stderr } = spawnSync(process.execPath, [inject('cli'), 'reconcile'], {
      cwd,
      stdio: [stdin, 'pipe', 'pipe'],
      encoding: 'utf8',
    });
    const advice = 'Expected ids on standard input, one per line: pipe them in, or redirect a file.';
    expect([status, stdout, stderr]).toEqual([2, '', `transfer-callbacks: ${advice}\n`]);
  }
});

const withOther = `
    service: { ...service, meanings: new Set(['SUCCESS', 'FAILED', 'OTHER']) },
    onSuccess() {}, onFailed() {}, onOther() {},`;
test('the record of an event that is no transfer cannot be reconciled', async () => {
  const { cwd, received } = await startBroken(404, {}, withOther);
  const { code, out, err } = await reconcile(['payout-1', 'other:charge.paid:7'], { cwd });
  const sentence =
    'Expected ids of transfers, got other:charge.paid:7, an event of `onOther`. If it is a transfer, give its externalId.';
  expect([code, out, err, received]).toEqual([2, '', `transfer-callbacks: ${sentence}\n`, []]);
});

test('without onOther an id that begins with other: is that of a transfer', async () => {
  const { cwd, received } = await startBroken(404);
  await reconcile(['other:charge.paid:7', 'other:8'], { cwd });
  expect(received.map(({ url }) => decodeURIComponent(String(url)))).toEqual([
    '/transactions/other:charge.paid:7',
    '/transactions/other:8',
  ]);
});

test('an app that ends the process after a signal does not make the command green', async () => {
  const { child, ended } = await startRunning(2, "\nprocess.on('SIGTERM', () => process.exit(0));");
  child.kill('SIGTERM');
  const { code, err } = await ended;
  expect([code, err.split('\n').at(-2)]).toEqual([
    1,
    'transfer-callbacks: Your app has ended the process before the command had finished.',
  ]);
});

test('a success that is not recorded, and a function of afterCommit that does not end, are no exit code 0', async () => {
  const settleFails = `
    onSuccess() {}, onFailed() {},
  });
  const { claim } = receiver.options.store;
  receiver.options.store.claim = async (...given) => {
    const reply = await claim(...given);
    return { ...reply, claim: { tx: undefined, renew: () => reply.claim.renew(), release: () => reply.claim.release(),
      settle: () => Promise.reject(new Error('read only')) } };
  };
  Object({`;
  const hangs = 'onSuccess(_callback, { afterCommit }) { afterCommit(() => new Promise(() => {})); }, onFailed() {},';
  await Promise.all(
    [settleFails, hangs].map(async (own) => {
      const app = await startApp(own);
      await app.transfer('no-callback-1');
      const { code, out, err } = await app.startReconcile(['no-callback-1']).ended;
      expect([code, objects(out)[0]]).toEqual([
        1,
        { type: 'transfer', id: 'no-callback-1', result: 'processed', status: 'SUCCESS' },
      ]);
      expect(err).toMatch(/^Not finished: 1 recordings of a success, or functions of `afterCommit`\.$/m);
    }),
  );
});

test('what an app prints stands beside the JSON, on standard error', async () => {
  const app = await startApp(`
    async onSuccess() {
      const { createRequire } = process.getBuiltinModule('node:module');
      const pino = createRequire(import.meta.url)('pino');
      console.log('by console');
      process.stdout.write('by stdout\\n');
      pino().info('by pino');
    },
    onFailed() {},`);
  await app.transfer('no-callback-1');
  const { code, out, err } = await app.startReconcile(['no-callback-1']).ended;
  expect([code, objects(out)]).toMatchObject([0, [{ result: 'processed' }, { type: 'summary' }]]);
  for (const how of ['console', 'stdout', 'pino']) expect(err).toContain(`by ${how}`);
});
