import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { postgresStore, redisStore } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { freePort } from '../support/port.js';
import type { PostgresServer } from '../support/postgres.js';
import type { RedisServer } from '../support/redis.js';
import { breakDriver, connectRedis, folderOf, folderWith, inspect, startApp, startServers } from './inspect-support.js';
import { objects } from './support.js';

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

const stateOf = (out: string): string => (objects(out)[0] as { record: { state: string } }).record.state;

describe('without a configuration file', () => {
  test.each(['ioredis', 'iovalkey', 'redis'])(
    'the Redis is read with the %s of the working directory',
    async (name) => {
      const cwd = await folderWith(name);
      const callback = transferSucceeded();
      const app = await startApp(redisStore(connectRedis(redis)));
      await app.receiver.receive(callback);
      const { out } = await inspect({ REDIS_URL: `${redis.url}/0` }, [callback.data.id, '--json'], { cwd });
      expect(stateOf(out)).toBe('settled');
      const elsewhere = await inspect({ REDIS_URL: `${redis.url}/99` }, ['any'], { cwd });
      expect(elsewhere).toMatchObject({ code: 3, err: '' });
      expect(elsewhere.out).toContain(': ERR DB index is out of range\n');
      const down = await inspect({ REDIS_URL: `redis://127.0.0.1:${await freePort()}` }, ['any'], { cwd });
      expect(down).toMatchObject({ code: 3, out: expect.stringContaining('ECONNREFUSED') as string });
    },
  );

  test('the PostgreSQL is found by its URL or by the PG variables, and warns of nothing', async () => {
    const callback = transferSucceeded();
    const app = await startApp(postgresStore(postgres.pool()));
    await app.receiver.receive(callback);
    const { hostname, port, username, password, pathname } = new URL(postgres.url);
    const variables = { PGHOST: hostname, PGPORT: port, PGUSER: username, PGPASSWORD: password };
    for (const env of [{ DATABASE_URL: postgres.url }, { ...variables, PGDATABASE: pathname.slice(1) }]) {
      const { out, err } = await inspect(env, [callback.data.id, '--json']);
      expect([stateOf(out), err]).toEqual(['settled', '']);
    }
    const { code, err } = await inspect({ DATABASE_URL: `${postgres.url}?sslmode=require` }, ['any']);
    expect([code, err]).toEqual([3, '']);
  });

  test('a database of another kind is no store', async () => {
    const env = { REDIS_URL: redis.url, DATABASE_URL: 'mysql://127.0.0.1/app' };
    expect((await inspect(env, ['any'])).out).toContain('\n  record    none\n');
  });

  test.each<[string, Record<string, string>]>([
    ['Expected TRANSFER_SERVICE_URL, REDIS_URL or DATABASE_URL in the environment.', {}],
    ['REDIS_URL and DATABASE_URL or PGHOST are set', { REDIS_URL: 'redis://h', DATABASE_URL: 'postgres://h/hidden' }],
    ['REDIS_URL and DATABASE_URL or PGHOST are set', { REDIS_URL: 'redis://h', PGDATABASE: 'hidden' }],
    ...['hidden:6379', 'unix:///hidden', '"redis://:hidden@h"', 'redis://:hid#den@h/hidden/x', 'valkey://hidden'].map(
      (url): [string, Record<string, string>] => ['REDIS_URL is set, but is no redis://', { REDIS_URL: url }],
    ),
    ['that ends in a database number. In a password, # and / are', { REDIS_URL: 'redis://:hidden@h/cache' }],
    ['DATABASE_URL is set, but is no postgres:// URL', { DATABASE_URL: 'host=h password=hidden' }],
  ])('%s: the error shows the file to write, and no value', async (message, env) => {
    const { code, out, err } = await inspect(env, ['any']);
    expect([code, out]).toEqual([2, '']);
    expect(err).toContain(message);
    expect(err).toContain('\nExport what your app uses from transfer-callbacks.config.js, for example:\n');
    expect(err).not.toContain('hidden');
  });

  test('a driver that is missing or cannot be loaded is named, and the service is shown', async () => {
    const cwd = await folderWith(undefined);
    const app = await startApp(redisStore(connectRedis(redis)));
    await app.transfer('success-1');
    const missing = await inspect({ ...app.env, REDIS_URL: redis.url }, ['success-1'], { cwd });
    expect(missing).toMatchObject({ code: 3, err: '' });
    expect(missing.out.replaceAll(/\n {12}/g, ' ')).toMatch(
      /service {3}SUCCESS .*\n {2}record {4}Redis at .*: none of ioredis, iovalkey, redis is installed in /,
    );
    const broken = await folderOf('', 'unused.mjs');
    await breakDriver(broken, 'pg');
    const unloadable = await inspect({ DATABASE_URL: postgres.url }, ['any'], { cwd: broken });
    expect(unloadable).toMatchObject({ code: 3, err: '' });
    expect(unloadable.out.replaceAll(/\n {12}/g, ' ')).toMatch(
      /record {4}PostgreSQL at .*: pg cannot be loaded: the native module is missing\n/,
    );
  });
});
