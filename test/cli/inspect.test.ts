import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { postgresStore, redisStore, type CallbackStore } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { startMerchant } from '../sandbox/support.js';
import { freePort } from '../support/port.js';
import type { PostgresServer } from '../support/postgres.js';
import type { RedisServer } from '../support/redis.js';
import { connectRedis, inspect, startApp, startServers, type Pod } from './inspect-support.js';
import { longestLine, objects } from './support.js';

// Each command is a process of its own, which takes seconds on a busy machine.
vi.setConfig({ testTimeout: 180_000 });

let redis: RedisServer;
let postgres: PostgresServer;

beforeAll(async () => {
  [redis, postgres] = await startServers();
});

afterAll(async () => {
  await Promise.all([redis.stop(), postgres.stop()]);
});

/** Runs some commands at a time: each is a process of its own. */
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
    const terms = { fingerprint: 'any', leaseMs: 300_000, retentionMs: 300_000, event: '', externalId: '' };
    const claim = await store.claim(claimed, { token: new Date().toISOString() + '/payouts-7f9c/41/k3-17', ...terms });
    const rows: [readonly string[], string, number][] = [
      [['query-lags-open'], 'open', 0],
      [['no-callback-claimed'], 'in_progress', 0],
      [['success-handled'], 'handled', 0],
      [[handled], 'handled', 0],
      [['no-callback-missed'], 'missed', 1],
      [['no-callback-missed', '--retention', '1'], 'missed_or_forgotten', 1],
      [['no-callback-conflict'], 'conflict', 1],
      [['query-lags-unfounded'], 'unfounded', 1],
      [[forged.data.id], 'unfounded', 1],
      [['unheard-of'], 'unknown', 1],
      [['success-handled', '--service', `http://127.0.0.1:${await freePort()}`], 'undecided', 3],
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

  test('of a missed callback says what to do in 80 columns, with the command to copy', async () => {
    const app = await startApp(redisStore(connectRedis(redis)));
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
      '  verdict   missed: The transfer is final, and no delivery has succeeded.',
      '  next      Your next reconciliation handles it. To have it handled now,',
      '            reconcile or resend this transfer. Both use the record, so the',
      '            handler does not run twice.',
      '',
      '  npx transfer-callbacks resend no-callback-1 --to CALLBACK_URL',
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
    expect(out).toContain('  service   not asked: TRANSFER_SERVICE_URL is not set\n');
    expect(out).toMatch(/\n {2}record {4}claimed since \S+ \S+ UTC, \d+ s ago, lease left \d+ s\n/);
    expect(out).toMatch(/\n {12}by .*payouts-7f9c.*41\n/);
    expect(out.replaceAll(/\n {12}/g, '')).toContain(token);
    expect(out).toMatch(/\n {2}verdict {3}in_progress: A delivery is being handled by .*payouts-7f9c/);
  });

  test('of an id from elsewhere rewrites no terminal', async () => {
    const { out } = await inspect({ REDIS_URL: redis.url }, ['odd\u001b[2J']);
    expect(out.split('\n')[0]).toBe('odd?[2J');
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
    expect(out).toMatch(/\n {2}service {3}The service refused: 400.*\n {2}record {4}handled/);
  });
});
