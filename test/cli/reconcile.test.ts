import { describe, expect, onTestFinished, test } from 'vitest';
import { create, startSandbox } from '../sandbox/support.js';
import { freePort } from '../support/port.js';
import { serve } from '../support/serve.js';
import { longestLine, objects, start, type Surroundings } from './support.js';

function reconcile(baseUrl: string, ids: readonly string[], surroundings: Surroundings = {}, args: string[] = []) {
  const env = {
    ...{ TRANSFER_SERVICE_URL: baseUrl, TRANSFER_API_KEY: 'sandbox-key', TRANSFER_API_SECRET: 'sandbox-secret' },
    ...surroundings.env,
  };
  return start(['reconcile', ...args], { ...surroundings, env, stdin: ids.map((id) => `${id}\n`).join('') }).ended;
}

/** A sandbox with a transfer that succeeded, one that failed and one that is open. */
async function startService() {
  const sandbox = await startSandbox({ clock: 'manual' });
  for (const externalId of ['success-1', 'failed-1']) await create(sandbox, { externalId, amount: 250 });
  await sandbox.advance(1_000);
  await create(sandbox, { externalId: 'open-1' });
  return sandbox;
}

/** A service that responds to every query with `respond`. Returns its address and how often it was asked. */
async function startBrokenService(status: number, headers: Record<string, string> = {}) {
  const asked: (string | undefined)[] = [];
  const { url, close } = await serve((request, response) => {
    asked.push(request.url);
    response.writeHead(status, headers).end('{"error":true,"statusCode":0,"message":"Key revoked","data":null}');
  });
  onTestFinished(close);
  return { url, asked };
}

test('in a pipe reconcile prints one object per transfer, and a summary', async () => {
  const { baseUrl } = await startService();
  const ids = ['success-1', '  failed-1  ', '', 'open-1', 'success-1'];
  const { code, out, err } = await reconcile(baseUrl, ids);
  expect([code, err]).toEqual([0, '']);
  const timestamp = '2026-01-15T10:30:01.000Z';
  expect(objects(out)).toEqual([
    {
      ...{ type: 'transfer', asked: 'success-1', state: 'final', id: expect.any(String) as string },
      ...{ externalId: 'success-1', status: 'SUCCESS', amount: 250, currency: 'XAF', timestamp },
    },
    expect.objectContaining({ asked: 'failed-1', state: 'final', status: 'FAILED' }),
    expect.objectContaining({ asked: 'open-1', state: 'open', status: 'PENDING' }),
    { type: 'summary', final: 2, open: 1, notRead: 0 },
  ]);
});

test('a transfer can be asked for by the id of the service', async () => {
  const sandbox = await startService();
  const ids = sandbox.transfers().map(({ id }) => id);
  const { code, out } = await reconcile(sandbox.baseUrl, ids);
  expect(code).toBe(0);
  expect(objects(out).slice(0, 3)).toMatchObject(ids.map((id) => ({ asked: id, id })));
});

test('unknown transfers and ids that cannot be asked for are distinguished, with exit code 1', async () => {
  const { baseUrl } = await startService();
  const { code, out } = await reconcile(baseUrl, ['nobody', 'a/b', 'success-1']);
  expect(code).toBe(1);
  expect(objects(out)).toMatchObject([
    { asked: 'nobody', state: 'unknown' },
    { asked: 'a/b', state: 'failed', code: 'INVALID_ID' },
    { asked: 'success-1', state: 'final' },
    { final: 1, unknown: 1, failed: 1, notRead: 0 },
  ]);
});

test('ids that cannot be asked for are no run of failures', async () => {
  const { baseUrl } = await startService();
  const { out } = await reconcile(baseUrl, [...Array.from({ length: 11 }, (_, index) => `a/${index}`), 'success-1']);
  expect(objects(out).at(-1)).toMatchObject({ final: 1, failed: 11, notRead: 0 });
});

test('on a terminal reconcile prints a row for each in 80 columns, and a progress line', async () => {
  const { baseUrl } = await startService();
  const ids = ['success-1', 'open-1', 'nobody\u001b[2J', 'x'.repeat(200)];
  const { code, out, err } = await reconcile(baseUrl, ids, { terminal: true, env: { NO_COLOR: '1' } });
  expect(code).toBe(1);
  expect(out.split('\n')).toEqual([
    'final      success-1  SUCCESS  250 XAF  2026-01-15T10:30:01.000Z',
    'open       open-1  PENDING  15000 XAF',
    expect.stringMatching(/^failed {5}nobody\\u\{1b\}\[2J {2}An id is 1 to 255 characters/),
    expect.stringMatching(/^unknown {4}x+…$/),
    '1 final, 1 open, 1 failed, 1 unknown',
    '',
  ]);
  expect(longestLine(out)).toBeLessThanOrEqual(80);
  expect(err).toContain('\r\u001b[K2 of 4: 1 final, 1 open, 2 not read');
  expect(err.endsWith('\r\u001b[K')).toBe(true);
});

test('with --json reconcile prints JSON on a terminal, too', async () => {
  const { baseUrl } = await startService();
  const { out } = await reconcile(baseUrl, ['open-1'], { terminal: true }, ['--json']);
  expect(objects(out)).toMatchObject([{ asked: 'open-1' }, { type: 'summary', open: 1 }]);
});

describe('a service that does not serve is left alone:', () => {
  const ids = Array.from({ length: 20 }, (_, index) => `payout-${index}`);

  test('reconcile stops after 10 refusals in a row, and counts the rest as not read', async () => {
    const { url, asked } = await startBrokenService(400);
    const { code, out } = await reconcile(url, ids);
    expect([code, asked.length]).toEqual([1, 10]);
    expect(objects(out).at(-1)).toEqual({ type: 'summary', failed: 10, notRead: 10, stopped: 'refused' });
  });

  test('reconcile stops when the service asks to wait for longer than a minute', async () => {
    const { url, asked } = await startBrokenService(503, { 'Retry-After': '3600' });
    const { code, out } = await reconcile(url, ids);
    expect([code, asked.length]).toEqual([1, 1]);
    expect(objects(out).at(-1)).toMatchObject({ failed: 1, notRead: 19, stopped: 'unavailable' });
  });

  test('on a terminal reconcile shows why it stopped', async () => {
    const { url } = await startBrokenService(503, { 'Retry-After': '3600' });
    const { out } = await reconcile(url, ids, { terminal: true, env: { NO_COLOR: '1' } });
    expect(out).toMatch(/\nStopped: unavailable\n1 failed, 19 not read\n$/);
  });

  test('reconcile waits for as long as the service asks', async () => {
    const { url, asked } = await startBrokenService(429, { 'Retry-After': '1' });
    const startedAt = performance.now();
    await reconcile(url, ids.slice(0, 2));
    // Two pauses of the client for each, and one between them.
    expect(asked).toHaveLength(6);
    expect(performance.now() - startedAt).toBeGreaterThan(5_000);
  });

  test('reconcile names the address where nobody listens, and prints no secret', async () => {
    const env = { TRANSFER_API_SECRET: 'the-hidden-secret' };
    const address = `http://127.0.0.1:${await freePort()}`;
    const { code, out, err } = await reconcile(address, ['payout-1'], { env });
    expect(code).toBe(1);
    expect(objects(out)[0]).toMatchObject({ message: expect.stringContaining(`from ${address}: `) as string });
    expect(out + err).not.toContain('the-hidden-secret');
  });
});

test('no ids are a mistake, such as a query that has failed before the pipe', async () => {
  const { code, out, err } = await reconcile('http://127.0.0.1:1', ['', '  ']);
  expect([code, out]).toEqual([2, '']);
  expect(err).toBe('transfer-callbacks: Expected ids on standard input, one per line, got none.\n');
});
