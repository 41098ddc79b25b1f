import { mkdtemp, mkdir, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import {
  postgresStore,
  redisStore,
  transferCallbackListener,
  transferCallbackReceiver,
  type CallbackStore,
} from 'transfer-callbacks';
import { transferClient } from 'transfer-callbacks/client';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { startMerchant, startSandbox } from '../sandbox/support.js';
import { serve } from '../support/serve.js';
import { freePort } from '../support/port.js';
import { startPostgres, type PostgresServer } from '../support/postgres.js';
import { startRedis, type RedisServer } from '../support/redis.js';
import { longestLine, objects, root, start, type Surroundings } from './support.js';

// Each command is a process of its own, which takes seconds on a busy machine.
vi.setConfig({ testTimeout: 180_000 });

let redis: RedisServer;
let postgres: PostgresServer;

beforeAll(async () => {
  [redis, postgres] = await Promise.all([startRedis(), startPostgres()]);
  await postgresStore(postgres.pool()).migrate();
});

afterAll(async () => {
  await Promise.all([redis.stop(), postgres.stop()]);
});

function connectRedis(): Redis {
  const client = new Redis(redis.url);
  onTestFinished(() => {
    client.disconnect();
  });
  return client;
}

/** The environment of a pod: a service with its keys, and a store. */
type Pod = Record<string, string>;

/** The sandbox's service, and an app whose receiver has `store`. */
async function startApp(store: CallbackStore<unknown>) {
  const done = (): void => undefined;
  const receiver = transferCallbackReceiver({ store, onSuccess: done, onFailed: done, logger: false });
  const { url, close } = await serve(transferCallbackListener({ receiver }));
  onTestFinished(close);
  const sandbox = await startSandbox({ finalAfterMs: 0, seed: crypto.getRandomValues(new Uint32Array(1))[0] });
  const client = transferClient({ baseUrl: sandbox.baseUrl, ...sandbox.keys.valid });
  return {
    receiver,
    baseUrl: sandbox.baseUrl,
    env: {
      TRANSFER_SERVICE_URL: sandbox.baseUrl,
      TRANSFER_API_KEY: 'sandbox-key',
      TRANSFER_API_SECRET: 'sandbox-secret',
    },
    /** Creates a transfer, waits until its callback was delivered, and resolves with its id. */
    transfer: async (externalId: string, callbackUrl = url): Promise<string> => {
      await client.createTransfer({ callbackUrl, externalId, amount: 250 });
      await sandbox.idle();
      return String(sandbox.transfers().find((each) => each.externalId === externalId)?.id);
    },
  };
}

const inspect = (env: Pod, args: readonly string[], surroundings: Surroundings = {}) =>
  start(['inspect', ...args], { ...surroundings, env: { NO_COLOR: '1', ...env } }).ended;

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
  Redis: () => ({ store: redisStore(connectRedis()), env: { REDIS_URL: redis.url } }),
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
    const app = await startApp(redisStore(connectRedis()));
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
    const app = await startApp(redisStore(connectRedis()));
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
    const store = redisStore(connectRedis());
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
    const app = await startApp(redisStore(connectRedis()));
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
    const app = await startApp(redisStore(connectRedis()));
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
    const app = await startApp(redisStore(connectRedis()));
    const id = await app.transfer('success-1');
    const env = { ...app.env, TRANSFER_API_KEY: 'another-key', REDIS_URL: redis.url };
    const { code, out } = await inspect(env, [id]);
    expect(code).toBe(3);
    expect(out).toMatch(/\n {2}service {3}The service refused: 400.*\n {2}record {4}handled/);
  });
});

describe('the store', () => {
  test('of Redis is read with the prefix that is given', async () => {
    const callback = transferSucceeded();
    const app = await startApp(redisStore(connectRedis(), { prefix: 'merchant:' }));
    await app.receiver.receive(callback);
    const { id } = callback.data;
    const results = [
      await inspect({}, [id, '--json', '--redis', redis.url, '--prefix', 'merchant:']),
      await inspect({}, [id, '--json', '--redis', redis.url]),
    ].map(({ out }) => (objects(out)[0] as { record: { state: string } }).record.state);
    expect(results).toEqual(['settled', 'free']);
  });

  test('of PostgreSQL is read from the table and schema that are given', async () => {
    const pool = postgres.pool();
    await pool.query('CREATE SCHEMA merchant');
    const store = postgresStore(pool, { schema: 'merchant', table: 'handled' });
    await store.migrate();
    const callback = transferSucceeded();
    const app = await startApp(store);
    await app.receiver.receive(callback);
    const names = ['--schema', 'merchant', '--table', 'handled'];
    const { code, out } = await inspect({ DATABASE_URL: postgres.url }, [callback.data.id, '--json', ...names]);
    expect(code).toBe(3);
    expect(objects(out)).toMatchObject([{ verdict: 'undecided', record: { state: 'settled' } }]);
  });

  test('is chosen with --store where the environment has both, and a database of another kind is no store', async () => {
    const both = { REDIS_URL: redis.url, DATABASE_URL: postgres.url };
    const results = await Promise.all([
      inspect(both, ['any']),
      inspect(both, ['any', '--store', 'postgres']),
      inspect(both, ['any', '--redis', redis.url]),
      inspect({ ...both, DATABASE_URL: 'mysql://127.0.0.1/app' }, ['any']),
    ]);
    expect(results.map(({ code }) => code)).toEqual([2, 3, 3, 3]);
    expect(results[0].err).toContain('Expected --store redis or --store postgres');
    for (const { out } of results.slice(1)) expect(out).toContain('\n  record    none\n');
  });

  /** A folder that has only this package of all that this repository has. */
  async function folderWith(name: string | undefined): Promise<string> {
    const folder = await mkdtemp(join(tmpdir(), 'transfer-callbacks-inspect-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    await mkdir(join(folder, 'node_modules'));
    if (name !== undefined) await symlink(join(root, 'node_modules', name), join(folder, 'node_modules', name));
    return folder;
  }

  test.each(['ioredis', 'iovalkey', 'redis'])('is read with the %s of the working directory', async (name) => {
    const cwd = await folderWith(name);
    const callback = transferSucceeded();
    const app = await startApp(redisStore(connectRedis()));
    await app.receiver.receive(callback);
    const { out } = await inspect({ REDIS_URL: redis.url }, [callback.data.id, '--json'], { cwd });
    expect(objects(out)).toMatchObject([{ record: { state: 'settled' } }]);
    const down = await inspect({ REDIS_URL: `redis://127.0.0.1:${await freePort()}` }, ['any'], { cwd });
    expect(down.code).toBe(3);
    expect(down.out).toContain('ECONNREFUSED');
  });

  test('needs a driver, and says which', async () => {
    const cwd = await folderWith(undefined);
    const results = await Promise.all([
      inspect({ REDIS_URL: redis.url }, ['any'], { cwd }),
      inspect({ DATABASE_URL: postgres.url }, ['any'], { cwd }),
    ]);
    expect(results.map(({ code }) => code)).toEqual([2, 2]);
    expect(results[0].err).toContain('Expected ioredis, iovalkey, redis to be installed in ');
    expect(results[1].err).toContain('Expected pg to be installed in ');
  });
});
