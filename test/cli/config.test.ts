import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { postgresStore, redisStore } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import type { PostgresServer } from '../support/postgres.js';
import type { RedisServer } from '../support/redis.js';
import { connectRedis, folderOf, inspect, startApp, startServers } from './inspect-support.js';
import { objects, start } from './support.js';

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

/** The file of an app whose receiver logs what it handles, and whose service is in the environment of its pod. */
const toConfig = (prefix: string, rest = ''): string => `
  import { Redis } from 'ioredis';
  import { redisStore, transferCallbackReceiver } from 'transfer-callbacks';
  import { transferClient } from 'transfer-callbacks/client';
  const { REDIS, SERVICE: baseUrl } = process.env;
  const handle = ({ data }) => process.stderr.write('Handled ' + data.externalId + '\\n');
  export const client = transferClient({ baseUrl, apiKey: 'sandbox-key', apiSecret: 'sandbox-secret' });
  export const receiver = transferCallbackReceiver({
    store: redisStore(new Redis(REDIS), { prefix: '${prefix}' }),
    onSuccess: handle,
    onFailed: handle,
    logger: false,
    ${rest}
  });`;

describe('the file of the app', () => {
  test.each([
    ['transfer-callbacks.config.js', (text: string) => text],
    ['transfer-callbacks.config.mjs', (text: string) => text],
    [
      'transfer-callbacks.config.cjs',
      (text: string) =>
        text
          .replaceAll(/import (\{.*\}) from (.*);/g, 'const $1 = require($2);')
          .replaceAll('export const', 'exports.a = 1; const')
          .concat('\nmodule.exports = { client, receiver };'),
    ],
  ])('%s gives the service, the keys, the store and its prefix', async (name, translate) => {
    const prefix = `${crypto.randomUUID()}:`;
    const app = await startApp(redisStore(connectRedis(redis), { prefix }));
    await app.transfer('success-1');
    const cwd = await folderOf(translate(toConfig(prefix)), name);
    const env = { REDIS: redis.url, SERVICE: app.baseUrl };
    const { code, out, err } = await inspect(env, ['success-1', '--json'], { cwd });
    expect([code, err]).toEqual([0, '']);
    expect(objects(out)).toMatchObject([{ verdict: 'handled' }]);
  });

  test('is given with --config, and is in the command that is printed', async () => {
    const prefix = `${crypto.randomUUID()}:`;
    const app = await startApp(redisStore(connectRedis(redis), { prefix }));
    await app.keep();
    await app.transfer('no-callback-1');
    const cwd = await folderOf(toConfig(prefix), 'ops.mjs');
    const env = { REDIS: redis.url, SERVICE: app.baseUrl };
    const { code, out } = await inspect(env, ['no-callback-1', '--config', 'ops.mjs'], { cwd });
    expect(code).toBe(1);
    expect(out).toContain(
      '\n  npx --no transfer-callbacks resend --to-env CALLBACK_URL --config ops.mjs no-callback-1\n',
    );
  });

  test('brings the schema of the receiver, and the retention of its store', async () => {
    const prefix = `${crypto.randomUUID()}:`;
    const app = await startApp(redisStore(connectRedis(redis), { prefix }));
    const id = await app.transfer('success-1');
    // The app's schema cuts amounts to thousands.
    const schema = `retentionMs: 91_000, schema: { '~standard': { validate: ({ event, data }) => ({ value: { event,
      data: { ...data, amount: Math.floor(data.amount / 1000) } } }) } },`;
    const cwd = await folderOf(toConfig(prefix, schema));
    const env = { REDIS: redis.url, SERVICE: app.baseUrl };
    expect(objects((await inspect(env, [id, '--json'], { cwd })).out)).toMatchObject([{ verdict: 'conflict' }]);
  });

  test('gives a store of PostgreSQL in a schema and its own table', async () => {
    const pool = postgres.pool();
    await pool.query('CREATE SCHEMA merchant');
    const store = postgresStore(pool, { schema: 'merchant', table: 'handled' });
    await store.migrate();
    const callback = transferSucceeded();
    const app = await startApp(store);
    await app.receiver.receive(callback);
    const cwd = await folderOf(`
      import { Pool } from 'pg';
      import { postgresStore } from 'transfer-callbacks';
      const pool = new Pool({ connectionString: ${JSON.stringify(postgres.url)} });
      export default { store: postgresStore(pool, { schema: 'merchant', table: 'handled' }) };
    `);
    const { code, out } = await inspect({}, [callback.data.id, '--json'], { cwd });
    expect(code).toBe(3);
    expect(objects(out)).toMatchObject([{ verdict: 'undecided', record: { state: 'settled' } }]);
  });

  test.each([
    ['export const x = 1;', 'Expected transfer-callbacks.config.mjs to export client, and receiver or store.'],
    [
      'export const client = {};',
      'Expected the client of transfer-callbacks.config.mjs to be made by transferClient().',
    ],
    ['export const receiver = null;', 'Expected the receiver of transfer-callbacks.config.mjs to be made by'],
    [
      'export const store = {};',
      'Expected the store of transfer-callbacks.config.mjs to be a store that has the method',
    ],
    ["throw new Error('no `pool` here');", 'transfer-callbacks.config.mjs cannot be loaded: no "pool" here'],
    ["import 'not-installed';", "transfer-callbacks.config.mjs cannot be loaded: Cannot find package 'not-installed'"],
  ])('%s is named in one line, with exit code 2', async (config, message) => {
    const cwd = await folderOf(config);
    const { code, out, err } = await inspect({}, ['a'], { cwd });
    expect([code, out]).toEqual([2, '']);
    expect(err).toContain(`transfer-callbacks: ${message}`);
    expect(err.trim().split('\n')).toHaveLength(1);
  });

  test('is not there: the error names it', async () => {
    const { code, err } = await inspect({}, ['a', '--config', 'nowhere.mjs']);
    expect([code, err]).toEqual([2, 'transfer-callbacks: Expected --config to name a file that exists.\n']);
  });

  test('fails after it was loaded: the command reports that in one sentence, and ends', async () => {
    const failing = `setTimeout(() => { throw new Error('the driver broke'); }); await new Promise(() => undefined);`;
    const cwd = await folderOf(failing);
    const inspected = await inspect({}, ['a'], { cwd });
    expect(inspected).toEqual({ code: 3, out: '', err: 'transfer-callbacks: the driver broke\n' });
    const resent = await start(['resend', 'a', '--to', 'http://127.0.0.1:1/'], { cwd }).ended;
    expect(resent).toEqual({ code: 1, out: '', err: 'transfer-callbacks: the driver broke\n' });
  });
});

test('reconcile --handle runs the handler of the app for what was not handled, and once', async () => {
  const prefix = `${crypto.randomUUID()}:`;
  const app = await startApp(redisStore(connectRedis(redis), { prefix }));
  for (const externalId of ['success-1', 'no-callback-2']) await app.transfer(externalId);
  const cwd = await folderOf(toConfig(prefix));
  const surroundings = {
    cwd,
    env: { REDIS: redis.url, SERVICE: app.baseUrl },
    stdin: 'success-1\nno-callback-2\nunheard-of\n',
  };
  const { code, out, err } = await start(['reconcile', '--handle'], surroundings).ended;
  expect([code, err]).toEqual([1, 'Handled no-callback-2\n']);
  expect(objects(out)).toMatchObject([
    { type: 'transfer', asked: 'success-1', state: 'duplicate' },
    { asked: 'no-callback-2', state: 'processed' },
    { asked: 'unheard-of', state: 'unknown', httpStatus: 404 },
    { type: 'summary', duplicate: 1, processed: 1, unknown: 1, notRead: 0 },
  ]);
  const again = await start(['reconcile', '--handle'], { ...surroundings, stdin: 'no-callback-2\n' }).ended;
  expect([again.code, again.err]).toEqual([0, '']);
});

test('reconcile --handle needs a receiver', async () => {
  const env = { TRANSFER_SERVICE_URL: 'http://127.0.0.1:1', TRANSFER_API_KEY: 'k', TRANSFER_API_SECRET: 's' };
  const { code, err } = await start(['reconcile', '--handle'], { env, stdin: 'a\n' }).ended;
  expect([code, err]).toEqual([2, expect.stringContaining('Expected --handle with a receiver in transfer-callbacks.')]);
});
