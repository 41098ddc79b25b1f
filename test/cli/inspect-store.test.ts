import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { postgresStore, redisStore } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { freePort } from '../support/port.js';
import type { PostgresServer } from '../support/postgres.js';
import type { RedisServer } from '../support/redis.js';
import { connectRedis, folderWith, inspect, startApp, startServers } from './inspect-support.js';
import { objects } from './support.js';

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

describe('the store', () => {
  test('of Redis is read with the prefix that is given', async () => {
    const callback = transferSucceeded();
    const app = await startApp(redisStore(connectRedis(redis), { prefix: 'merchant:' }));
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

  test.each(['ioredis', 'iovalkey', 'redis'])('is read with the %s of the working directory', async (name) => {
    const cwd = await folderWith(name);
    const callback = transferSucceeded();
    const app = await startApp(redisStore(connectRedis(redis)));
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
