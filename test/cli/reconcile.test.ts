import { describe, expect, onTestFinished, test } from 'vitest';
import { startMerchant } from '../sandbox/support.js';
import { freePort } from '../support/port.js';
import { serve } from '../support/serve.js';
import { folderOf, reconcile, startApp, toConfig } from './app-support.js';
import { longestLine, objects } from './support.js';

/** The folder of an app whose service responds to every query with `respond`, and how often it was asked. */
async function startBroken(status: number, headers: Record<string, string> = {}) {
  const asked: (string | undefined)[] = [];
  const { url, close } = await serve((request, response) => {
    asked.push(request.url);
    response.writeHead(status, headers).end('{"error":true,"statusCode":0,"message":"Key revoked","data":null}');
  });
  onTestFinished(close);
  return { cwd: await folderOf(await toConfig('any:', url)), asked };
}

test('reconcile runs the handler of the app for what was not handled, once, and prints an object for each', async () => {
  const app = await startApp();
  const { url: elsewhere } = await startMerchant();
  await app.transfer('success-1');
  const missed = await app.transfer('no-callback-2');
  await app.transfer('query-lags-3', elsewhere);
  const ids = ['success-1', '  no-callback-2  ', '', 'query-lags-3', 'success-1'];
  const { code, out, err } = await app.reconcile(ids).ended;
  expect([code, err]).toEqual([0, 'Handled no-callback-2\n']);
  expect(objects(out)).toEqual([
    { type: 'transfer', id: 'success-1', result: 'duplicate' },
    { type: 'transfer', id: 'no-callback-2', result: 'processed' },
    { type: 'transfer', id: 'query-lags-3', result: 'pending' },
    { type: 'summary', duplicate: 1, processed: 1, pending: 1, notRead: 0 },
  ]);
  const again = await app.reconcile([missed]).ended;
  expect([again.code, again.err, objects(again.out)[0]]).toEqual([
    0,
    '',
    { type: 'transfer', id: missed, result: 'duplicate' },
  ]);
});

test('unknown transfers, ids that cannot be asked for and handlers that throw are exit code 1', async () => {
  const app = await startApp("onSuccess() { throw new Error('The books are closed'); }, onFailed() {},");
  await app.transfer('no-callback-1');
  // More ids that cannot be asked for than failures that end a pass.
  const ids = [...Array.from({ length: 11 }, (_, index) => `a/${index}`), 'nobody', 'no-callback-1'];
  const { code, out } = await app.reconcile(ids).ended;
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
  const { code, out, err } = await app.reconcile(ids, { terminal: true }).ended;
  expect(code).toBe(1);
  expect(out.split('\n')).toEqual([
    'duplicate  success-1',
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
  const { out } = await reconcile(['a'], { cwd, terminal: true }, '--json').ended;
  expect(objects(out)).toMatchObject([
    { id: 'a', result: 'unknown' },
    { type: 'summary', unknown: 1 },
  ]);
});

describe('a service that does not serve is left alone:', () => {
  const ids = Array.from({ length: 20 }, (_, index) => `payout-${index}`);

  test('reconcile stops after 10 refusals in a row, and counts the rest as not read', async () => {
    const { cwd, asked } = await startBroken(400);
    const { code, out } = await reconcile(ids, { cwd }).ended;
    expect([code, asked.length]).toEqual([1, 10]);
    expect(objects(out).at(-1)).toEqual({ type: 'summary', failed: 10, notRead: 10, stopped: 'refused' });
  });

  test('on a terminal reconcile shows why it stopped', async () => {
    const { cwd } = await startBroken(503, { 'Retry-After': '3600' });
    const { out } = await reconcile(ids, { cwd, terminal: true }).ended;
    expect(out).toMatch(/\nStopped: unavailable\n1 failed, 19 not read\n$/);
  });

  test('reconcile names the address where nobody listens, and prints no secret', async () => {
    const address = `http://127.0.0.1:${await freePort()}`;
    const cwd = await folderOf(await toConfig('any:', address));
    const { code, out, err } = await reconcile(['payout-1'], { cwd, env: { SECRET: 'the-hidden-secret' } }).ended;
    expect(code).toBe(1);
    expect(objects(out)[0]).toMatchObject({ message: expect.stringContaining(`from ${address}: `) as string });
    expect(out + err).not.toContain('the-hidden-secret');
  });
});
