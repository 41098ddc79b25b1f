import { execFileSync } from 'node:child_process';
import { describe, expect, test, vi } from 'vitest';
import { startMerchant } from '../../sandbox/test/service/support.js';
import { startQueries, startService } from '../client/support.js';
import { claimFree } from '../stores/support.js';
import { freePort } from '../support/servers/port.js';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { findRedis, folderOf, inspect, startApp, toConfig } from './app-support.js';
import { longestLine, objects, start } from './support.js';

describe('the output', () => {
  const masked = (out: string): string[] =>
    out
      .replaceAll(/[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}/g, 'ID')
      .replaceAll(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC, \d+ s ago/g, 'TIME')
      .split('\n');

  test('of a missed callback shows what to do in 80 columns, with the command to copy', async () => {
    const app = await startApp();
    await app.transfer('no-callback-1');
    const { code, out, err } = await app.inspect(['no-callback-1'], { terminal: true });
    expect([code, err]).toEqual([1, '']);
    expect(masked(out)).toEqual([
      'no-callback-1  250 XAF  mobile_money  MTN',
      '',
      '  id        ID',
      '  service   SUCCESS since TIME',
      '  record    none',
      '  verdict   missed: The transfer is final, and there is no record.',
      '  next      Reconcile it now, or leave it to the next reconciliation. But if the',
      '            store may have lost records (flush, eviction, failover, another',
      '            prefix), stop reconciliation and compare with your books first. The',
      '            log shows whether callbacks came, and why they failed: search the',
      '            id.',
      '',
      '  echo no-callback-1 | npx --no transfer-callbacks reconcile',
      '',
    ]);
    expect(longestLine(out)).toBeLessThanOrEqual(80);
  });

  test("the age of a final status in the future is by the service's clock", async () => {
    const timestamp = new Date(Date.now() + 90_000_000).toISOString();
    const { baseUrl } = await startQueries((id) => [200, { data: transferSucceeded({ id, timestamp }).data }]);
    const { out } = await inspect(['a'], { cwd: await folderOf(await toConfig(`${crypto.randomUUID()}:`, baseUrl)) });
    expect(out).toMatch(/\n {2}service {3}SUCCESS since [\d-]+ [\d:]+ UTC, in 2[45] h by the service's\s+clock\n/);
  });

  test('has a command for any id: a shell prints the id as it is', async () => {
    const app = await startApp();
    const { url: elsewhere } = await startMerchant();
    for (const externalId of ["it's $HOME", '-n']) {
      await app.transfer(externalId, elsewhere);
      const { out } = await app.inspect(['--', externalId]);
      const [, command = ''] = /\n {2}(.*) \| npx --no transfer-callbacks reconcile\n/.exec(out) ?? [];
      expect(execFileSync('sh', ['-c', command], { encoding: 'utf8' })).toBe(`${externalId}\n`);
    }
  });

  test('of a record shows its facts and its times, and no personal field of the transfer', async () => {
    const app = await startApp();
    await app.transfer('success-1');
    for (const format of [[], ['--json']]) {
      const { code, out } = await app.inspect(['success-1', ...format]);
      expect(code).toBe(0);
      expect(out).toContain('delivery');
      expect(out).toMatch(/\[\\?"SUCCESS\\?",250,\\?"XAF\\?",\\?"success-1\\?"\]/);
      expect(out).not.toMatch(/walletNumber|237670000000|sandbox-secret/);
      expect(longestLine(format.length > 0 ? '' : out)).toBeLessThanOrEqual(80);
    }
  });

  test('of a claim shows who holds it and for how long', async () => {
    const app = await startApp();
    const id = await app.transfer('no-callback-1');
    const token = `${new Date().toISOString()}/payouts-7f9c/41/k3x9q2h1-17`;
    await app.store.claim(id, { token, fingerprint: 'any', leaseMs: 60_000, retentionMs: 300_000 });
    const { code, out } = await app.inspect(['no-callback-1']);
    expect(code).toBe(0);
    expect(out).toMatch(/\n {2}record {4}claimed since \S+ \S+ UTC, \d+ s ago, lease left \d+ s\n/);
    expect(out).toMatch(/\n {12}by .*payouts-7f9c.*41\n/);
    expect(out.replaceAll(/\n {12}/g, '')).toContain(token);
    expect(out).toMatch(/\n {2}verdict {3}in_progress: A delivery is being handled by .*payouts-7f9c/);
  });

  test('fits every terminal of 1 to 200 columns', async () => {
    const cwd = await folderOf(await toConfig('any:', 'http://127.0.0.1:1'));
    for (const columns of [1, 12, 20, 200]) {
      const { code, out } = await inspect(['付款-付款-付款-付款-😀'], {
        terminal: true,
        cwd,
        env: { TERMINAL_COLUMNS: String(columns) },
      });
      expect(code).toBe(3);
      const widest = Math.max(...out.split('\n').map((line) => line.replaceAll(/[付款😀]/gu, '__').length));
      expect([columns, widest]).toEqual([columns, Math.min(widest, Math.max(20, columns))]);
    }
  });

  test('of a record with other facts, and of one that the service calls open, has exit code 1', async () => {
    const app = await startApp();
    const id = await app.transfer('no-callback-1');
    const claim = await claimFree(app.store, { fingerprint: '["FAILED",250,"XAF","no-callback-1"]' }, id);
    await claim.settle();
    await app.transfer('query-lags-2');
    for (const [externalId, verdict] of [
      ['no-callback-1', 'conflict'],
      ['query-lags-2', 'unfounded'],
    ] as const) {
      const { code, out } = await app.inspect([externalId, '--json']);
      expect([code, objects(out)]).toMatchObject([1, [{ verdict }]]);
    }
  });

  test('of many transfers is a line each, with the exit code of the worst', async () => {
    const app = await startApp();
    for (const externalId of ['success-1', 'no-callback-2']) await app.transfer(externalId);
    const { code, out, err } = await app.inspect([], { stdin: 'success-1\n\n  no-callback-2 \nodd\u001b[2J\n' });
    expect([code, err]).toEqual([1, '']);
    expect(out.split('\n')).toEqual([
      'handled      success-1  250 XAF  mobile_money  MTN',
      'missed       no-callback-2  250 XAF  mobile_money  MTN',
      String.raw`undecided    odd\u{1b}[2J`,
      '',
    ]);
    const json = await app.inspect(['--json'], { stdin: 'success-1\nunheard-of\n' });
    expect([json.code, objects(json.out)]).toMatchObject([1, [{ verdict: 'handled' }, { verdict: 'unknown' }]]);
  });

  test('of many transfers ends after five in a row of which nothing can be concluded', async () => {
    const cwd = await folderOf(await toConfig('any:', `http://127.0.0.1:${await freePort()}`));
    const { code, out, err } = await inspect([], { cwd, stdin: ['a', 'b', 'c', 'd', 'e', 'f'].join('\n') });
    expect(code).toBe(3);
    expect(out.trim().split('\n')).toHaveLength(5);
    expect(err).toMatch(
      /^Stopped after e: Nothing can be concluded: the service could not be read\. Check the address/,
    );
  });

  test('tells after three seconds that the service is waited for', async () => {
    const { baseUrl } = await startService([() => undefined]);
    const { said, child } = start(['inspect', 'a'], { cwd: await folderOf(await toConfig('any:', baseUrl)) });
    await vi.waitUntil(() => said.err !== '', { timeout: 60_000 });
    expect(said.err).toBe('Still waiting for the service, which is asked up to 3 times.\n');
    child.kill();
  });
});

describe('one half alone', () => {
  test('the service is shown when the store cannot be reached, and no password', async () => {
    const app = await startApp();
    await app.transfer('no-callback-1');
    const config = app.config.replace((await findRedis()).url, `redis://:hidden@127.0.0.1:${await freePort()}`);
    const { code, out, err } = await inspect(['no-callback-1'], { cwd: await folderOf(config) });
    expect([code, err]).toEqual([3, expect.not.stringContaining('hidden')]);
    expect(out).toMatch(/\n {2}service {3}SUCCESS since .*\n {2}record {4}not read: [^]*\n {2}verdict {3}undecided: /);
    expect(out.replaceAll(/\s+/g, ' ')).toContain(
      'Check that the store can be reached, and that it is the one of your',
    );
    expect(out).not.toContain('hidden');
  });

  test('an error of several lines is one line', async () => {
    const read = "async read() { throw new Error('\\nInvalid query:\\n\\n  no table'); }";
    const app = await startApp(`store: { claim() {}, ${read} }, onSuccess() {}, onFailed() {}`);
    await app.transfer('no-callback-1');
    const { out } = await app.inspect(['no-callback-1']);
    expect(out).toContain('\n  record    not read: Invalid query: no table\n');
  });

  test('the record is shown when the service refuses the key', async () => {
    const app = await startApp();
    const id = await app.transfer('success-1');
    const { code, out } = await app.inspect([id], { env: { SECRET: 'another-secret' } });
    expect(code).toBe(3);
    expect(out).toMatch(/\n {2}service {3}The service at \S+ refused: 400[^]*\n {2}record {4}handled/);
  });
});
