import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { postgresStore, redisStore, type CallbackStore } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { startMerchant } from '../sandbox/support.js';
import { freePort } from '../support/port.js';
import type { PostgresServer } from '../support/postgres.js';
import type { RedisServer } from '../support/redis.js';
import { serve } from '../support/serve.js';
import { connectRedis, inspect, startApp, startServers, type Pod } from './inspect-support.js';
import { longestLine, objects, start } from './support.js';

// Each command is a separate process, which takes seconds on a busy machine.
vi.setConfig({ testTimeout: 180_000 });

let redis: RedisServer;
let postgres: PostgresServer;

beforeAll(async () => {
  [redis, postgres] = await startServers();
});

afterAll(async () => {
  await Promise.all([redis.stop(), postgres.stop()]);
});

/** Runs some commands at a time: each is a separate process. */
async function verdicts(env: Pod, asked: readonly (readonly string[])[]): Promise<unknown[]> {
  const found: unknown[] = [];
  for (let from = 0; from < asked.length; from += 4) {
    const some = asked.slice(from, from + 4).map(async (args) => {
      const { code, out } = await inspect(env, [...args, '--json']);
      return [(objects(out)[0] as { verdict: string }).verdict, code];
    });
    found.push(...(await Promise.all(some)));
  }
  return found;
}

const stores: Record<string, () => { store: CallbackStore<unknown>; env: Pod }> = {
  Redis: () => ({ store: redisStore(connectRedis(redis)), env: { REDIS_URL: redis.url } }),
  PostgreSQL: () => ({ store: postgresStore(postgres.pool()), env: { DATABASE_URL: postgres.url } }),
};

test.each(Object.entries(stores))(
  'inspect gives the verdict of every row on %s, with its exit code',
  async (_name, open) => {
    const { store, env } = open();
    const app = await startApp(store);
    const { url: elsewhere } = await startMerchant();
    await app.transfer('no-callback-early');
    await app.keep();
    const claimed = await app.transfer('no-callback-claimed');
    await app.transfer('query-lags-open', elsewhere);
    await app.transfer('success-handled');
    const handled = await app.transfer('failed-handled');
    await app.transfer('no-callback-missed');
    const contradicted = await app.transfer('no-callback-conflict');
    await app.transfer('query-lags-unfounded');
    const forged = transferSucceeded();
    await app.receiver.receive(forged);
    await app.receiver.receive(transferFailed({ id: contradicted, externalId: 'no-callback-conflict', amount: 250 }));
    const terms = { fingerprint: 'any', leaseMs: 300_000, retentionMs: 604_800_000, event: '', externalId: '' };
    const claim = await store.claim(claimed, { token: new Date().toISOString() + '/payouts-7f9c/41/k3-17', ...terms });
    const rows: [readonly string[], string, number][] = [
      [['query-lags-open'], 'open', 0],
      [['no-callback-claimed'], 'in_progress', 0],
      [['success-handled'], 'handled', 0],
      [[handled], 'handled', 0],
      [['no-callback-missed'], 'missed', 1],
      [['no-callback-early'], 'missed_or_forgotten', 1],
      [['no-callback-conflict'], 'conflict', 1],
      [['query-lags-unfounded'], 'unfounded', 1],
      [[forged.data.id], 'unfounded', 1],
      [['unheard-of'], 'unknown', 1],
      [['a/b'], 'undecided', 3],
    ];
    const found = await verdicts(
      { ...app.env, ...env },
      rows.map(([args]) => args),
    );
    if (claim.state === 'claimed') await claim.lease.release();
    expect(found).toEqual(rows.map(([, verdict, code]) => [verdict, code]));
  },
  300_000,
);

describe('the output', () => {
  const masked = (out: string): string[] =>
    out
      .replaceAll(/[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}/g, 'ID')
      .replaceAll(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC, \d+ s ago/g, 'TIME')
      .split('\n');

  test('of a missed callback shows what to do in 80 columns, with the command to copy', async () => {
    const app = await startApp(redisStore(connectRedis(redis)));
    await app.keep();
    await app.transfer('no-callback-1');
    const env = { ...app.env, REDIS_URL: redis.url };
    const { code, out, err } = await inspect(env, ['no-callback-1'], { terminal: true });
    expect([code, err]).toEqual([1, '']);
    expect(masked(out)).toEqual([
      'no-callback-1  250 XAF  mobile_money  MTN',
      '',
      '  id        ID',
      '  service   SUCCESS since TIME',
      '  record    none',
      '  verdict   missed: The transfer is final, and no success is recorded.',
      '  next      Your next reconciliation handles it. To have it handled now,',
      '            reconcile or resend this transfer. Both use the record: unless the',
      '            store has lost some, the handler does not run twice.',
      '',
      '  npx --no transfer-callbacks resend --to-env CALLBACK_URL no-callback-1',
      '',
    ]);
    expect(longestLine(out)).toBeLessThanOrEqual(80);
  });

  test('of a record shows its facts and its times, and no personal field of the transfer', async () => {
    const app = await startApp(redisStore(connectRedis(redis)));
    await app.transfer('success-1');
    for (const format of [[], ['--json']]) {
      const { code, out } = await inspect({ ...app.env, REDIS_URL: redis.url }, ['success-1', ...format]);
      expect(code).toBe(0);
      expect(out).toMatch(/\[\\?"SUCCESS\\?",250,\\?"XAF\\?",\\?"success-1\\?"\]/);
      expect(out).not.toMatch(/walletNumber|237|sandbox-secret/);
      expect(longestLine(format.length > 0 ? '' : out)).toBeLessThanOrEqual(80);
    }
  });

  test('of a claim shows who holds it and for how long', async () => {
    const store = redisStore(connectRedis(redis));
    const token = `${new Date().toISOString()}/payouts-7f9c/41/k3x9q2h1-17`;
    await store.claim('held', { token, fingerprint: 'any', leaseMs: 60_000, retentionMs: 300_000 });
    const { code, out } = await inspect({ REDIS_URL: redis.url }, ['held']);
    expect(code).toBe(0);
    expect(out).toContain('  service   not asked: there is no client\n');
    expect(out).toMatch(/\n {2}record {4}claimed since \S+ \S+ UTC, \d+ s ago, lease left \d+ s\n/);
    expect(out).toMatch(/\n {12}by .*payouts-7f9c.*41\n/);
    expect(out.replaceAll(/\n {12}/g, '')).toContain(token);
    expect(out).toMatch(/\n {2}verdict {3}in_progress: A delivery is being handled by .*payouts-7f9c/);
  });

  test('fits every terminal of 1 to 200 columns', async () => {
    const env = { REDIS_URL: redis.url, TRANSFER_SERVICE_URL: 'http://127.0.0.1:1' };
    const keys = { TRANSFER_API_KEY: 'k', TRANSFER_API_SECRET: 's' };
    for (const columns of [1, 11, 12, 13, 19, 20, 40, 200]) {
      const surroundings = { terminal: true, env: { ...env, ...keys, TERMINAL_COLUMNS: String(columns) } };
      const { code, out } = await inspect(surroundings.env, ['付款-付款-付款-付款-😀'], surroundings);
      expect(code).toBe(3);
      const widest = Math.max(...out.split('\n').map((line) => line.replaceAll(/[付款😀]/gu, '__').length));
      expect([columns, widest]).toEqual([columns, Math.min(widest, Math.max(20, columns))]);
    }
  });

  test('of many transfers is a line each, with the exit code of the worst', async () => {
    const app = await startApp(redisStore(connectRedis(redis)));
    await app.keep();
    for (const externalId of ['success-1', 'no-callback-2']) await app.transfer(externalId);
    const stdin = 'success-1\n\n  no-callback-2 \n-dash\n';
    const env = { ...app.env, REDIS_URL: redis.url };
    const { code, out, err } = await inspect(env, [], { stdin });
    expect([code, err]).toEqual([1, '']);
    expect(out.split('\n')).toEqual([
      'handled              success-1  250 XAF  mobile_money  MTN',
      'missed               no-callback-2  250 XAF  mobile_money  MTN',
      'unknown              -dash',
      '',
    ]);
    const json = await inspect(env, ['--json'], { stdin: 'success-1\n' });
    expect(json.code).toBe(0);
    expect(objects(json.out)).toMatchObject([{ verdict: 'handled', id: 'success-1' }]);
  });

  test('of many transfers ends after five in a row of which nothing can be concluded', async () => {
    const stdin = ['a', 'b', 'c', 'd', 'e', 'f'].join('\n');
    const { code, out, err } = await inspect({ REDIS_URL: redis.url }, [], { stdin });
    expect(code).toBe(3);
    expect(out.trim().split('\n')).toHaveLength(5);
    expect(err).toBe(
      'Stopped after e: Nothing can be concluded: the service was not read. Inspect it again when both can be read. ' +
        'Until then the record is that of the given id, and counts only if that is the id of the service.\n',
    );
  });

  test('tells after three seconds that the service is waited for', async () => {
    const { url, close } = await serve(() => undefined);
    onTestFinished(close);
    const env = { TRANSFER_SERVICE_URL: url, TRANSFER_API_KEY: 'k', TRANSFER_API_SECRET: 's', NO_COLOR: '1' };
    const { said, child } = start(['inspect', 'a'], { env });
    await vi.waitUntil(() => said.err !== '', { timeout: 60_000 });
    expect(said.err).toBe(`Still waiting for ${new URL(url).origin}, which is asked up to 3 times.\n`);
    child.kill();
  });

  test('of an id from elsewhere rewrites no terminal', async () => {
    const { out } = await inspect({ REDIS_URL: redis.url }, ['odd\u001b[2J']);
    expect(out.split('\n')[0]).toBe(String.raw`odd\u{1b}[2J`);
  });
});

describe('one half alone', () => {
  test('the service is shown without a store', async () => {
    const app = await startApp(redisStore(connectRedis(redis)));
    const id = await app.transfer('no-callback-1');
    const { code, out } = await inspect(app.env, ['no-callback-1', '--json']);
    expect(code).toBe(3);
    expect(objects(out)).toMatchObject([
      { verdict: 'undecided', recordId: id, service: { state: 'final' }, record: { state: 'unread' } },
    ]);
  });

  test.each([
    ['REDIS_URL', 'redis://127.0.0.1'],
    ['DATABASE_URL', 'postgres://postgres:hidden@127.0.0.1'],
  ])('the service is shown when %s is not reachable, and no password', async (variable, address) => {
    const app = await startApp(redisStore(connectRedis(redis)));
    await app.transfer('no-callback-1');
    const { code, out, err } = await inspect({ ...app.env, [variable]: `${address}:${await freePort()}` }, [
      'no-callback-1',
    ]);
    expect([code, err]).toEqual([3, '']);
    expect(out).toMatch(
      /\n {2}service {3}SUCCESS since .*\n {2}record {4}.*ECONNREFUSED.*\n {2}verdict {3}undecided: /,
    );
    expect(out).not.toContain('hidden');
  });

  test('the record is shown when the service refuses the key', async () => {
    const app = await startApp(redisStore(connectRedis(redis)));
    const id = await app.transfer('success-1');
    const env = { ...app.env, TRANSFER_API_KEY: 'another-key', REDIS_URL: redis.url };
    const { code, out } = await inspect(env, [id]);
    expect(code).toBe(3);
    expect(out).toMatch(/\n {2}service {3}The service at \S+ refused: 400[^]*\n {2}record {4}handled/);
  });
});
