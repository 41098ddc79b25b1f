import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from 'vitest';
import { post } from '../support/helpers/post.js';
import { startPostgres } from '../support/servers/postgres.js';
import { startRedis } from '../support/servers/redis.js';
import { findPsql } from '../support/servers/psql.js';
import { findCli } from '../support/servers/redis-programs.js';
import {
  findApp,
  findCheck,
  findServiceApp,
  findServiceCheck,
  packages,
  readLedger,
  secret,
  startApp,
} from './quick-start.js';
import { install, installed, makeWorkshop, packageName, start, stepMs } from './support.js';

// The apps of the README and of docs/stores.md, as they are printed, on the tarball and what these pages install.

let workshop: string;

beforeAll(async () => {
  workshop = await makeWorkshop();
  const others = packages.filter((name) => name !== packageName);
  const versions = await Promise.all(others.map(async (name) => [name, await installed(name)]));
  const dependencies = {
    [packageName]: `file:${inject('tarball')}`,
    'transfer-sandbox': `file:${inject('sandboxTarball')}`,
    ...(Object.fromEntries(versions) as object),
  };
  await install(workshop, { dependencies });
}, stepMs);

afterAll(() => rm(workshop, { recursive: true, force: true }));

/**
 * Starts the app and sends it a success, a failure, a copy of each and a forgery. Expects that it handles each transfer
 * once.
 */
async function tryApp(store: 'memory' | 'pg' | 'redis', environment: NodeJS.ProcessEnv = {}) {
  const folder = join(workshop, store);
  await mkdir(folder);
  const app = await startApp(folder, findApp(store), environment);
  onTestFinished(app.stop);
  const paid = transferSucceeded({ externalId: 'payout-1' });
  const failed = transferFailed({ externalId: 'payout-2', failureReason: 'Wallet closed' });
  for (const outcome of ['processed', 'duplicate']) {
    for (const callback of [paid, failed]) {
      expect(await post(app.url, callback)).toMatchObject({ status: 200, body: JSON.stringify({ outcome }) });
    }
  }
  const forged = transferSucceeded({ externalId: 'payout-3' });
  expect((await post(app.url.replace(secret, 'a-guess'), forged)).status).toBe(401);
  return { ...app, folder, paid };
}

test(
  'the first app of the README handles each transfer once, and needs no database',
  async () => {
    const { folder } = await tryApp('memory');
    expect(await readLedger(folder)).toEqual(['Listening', 'payout-1 SUCCESS', 'payout-2 FAILED Wallet closed']);
  },
  stepMs,
);

test(
  'the app of the README on PostgreSQL writes through `tx`, and knows its transfers after a restart',
  async () => {
    const postgres = await startPostgres();
    onTestFinished(() => postgres.stop());
    const { folder, paid, stop } = await tryApp('pg', { DATABASE_URL: postgres.url });
    await stop();
    const again = await startApp(folder, findApp('pg'), { DATABASE_URL: postgres.url });
    onTestFinished(again.stop);
    expect((await post(again.url, paid)).body).toBe('{"outcome":"duplicate"}');
    const { rows } = await postgres.pool().query('SELECT payout, entry FROM ledger ORDER BY payout');
    expect(rows).toEqual([
      { payout: 'payout-1', entry: 'SUCCESS' },
      { payout: 'payout-2', entry: 'FAILED' },
    ]);
  },
  stepMs,
);

test(
  'the app of docs/stores.md on Redis has its prefix, and a handler that runs again writes nothing new',
  async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.stop());
    const { url, paid } = await tryApp('redis', { REDIS_URL: `redis://127.0.0.1:${redis.port}` });
    const key = `payouts-production:${paid.data.id}`;
    const booked = await redis.command('hgetall', 'ledger');
    expect(booked).toMatchObject({ [`paid ${paid.data.id}`]: 'payout-1 SUCCESS' });
    expect(await redis.command('del', key)).toBe(1);
    const again = { ...paid, data: { ...paid.data, externalId: 'payout-9' } };
    expect((await post(url, again)).body).toBe('{"outcome":"processed"}');
    expect(await redis.command('hgetall', 'ledger')).toEqual(booked);
    // After a success of the id that was lost, a refund is not taken for its copy.
    expect(await redis.command('del', key)).toBe(1);
    const refunded = transferFailed({ id: paid.data.id, externalId: 'payout-1', failureReason: 'Wallet closed' });
    expect((await post(url, refunded)).body).toBe('{"outcome":"processed"}');
    expect(await redis.command('hget', 'ledger', `refund ${paid.data.id}`)).toBe('payout-1 FAILED');
  },
  stepMs,
);

/** Starts an app, and runs the check of the README with the count that is printed beside the app, whose program is `cli`. */
async function checkApp(store: 'pg' | 'redis', environment: NodeJS.ProcessEnv, cli: string): Promise<void> {
  const folder = join(workshop, `${store}-check`);
  await mkdir(folder);
  const app = await startApp(folder, findApp(store), environment);
  onTestFinished(app.stop);
  const program = store === 'pg' ? 'psql' : 'redis-cli';
  const command = findCheck(app.port, program).replace(program, () => cli);
  const env = { ...environment, CALLBACK_SECRET: secret };
  const { code, stdout, stderr } = await start('bash', ['-c', command], folder, env);
  expect(code, stdout + stderr).toBe(0);
  expect(stdout).toMatch(/^✓ failed +acknowledges it +200 +once$/m);
  expect(stdout).toContain('19 right, 0 wrong, 0 not seen.');
}

test(
  'the app of the README for a service by its name does all that `check` plays of it',
  async () => {
    const folder = join(workshop, 'service');
    await mkdir(folder);
    const app = await startApp(folder, findServiceApp());
    onTestFinished(app.stop);
    const { code, stdout, stderr } = await start('bash', ['-c', findServiceCheck(app.port)], folder, {
      CALLBACK_SECRET: secret,
    });
    expect(code, stdout + stderr).toBe(0);
    expect(stdout).toMatch(/^✓ reversed /m);
    expect(stdout).not.toContain('✗');
  },
  stepMs,
);

test(
  'with the count of the README, `check` sees all of its app on PostgreSQL',
  async () => {
    const postgres = await startPostgres();
    onTestFinished(() => postgres.stop());
    await checkApp('pg', { DATABASE_URL: postgres.url }, await findPsql());
  },
  stepMs,
);

test(
  'with the count of docs/stores.md, `check` sees all of its app on Redis',
  async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.stop());
    await checkApp('redis', { REDIS_URL: redis.url }, `${await findCli()} -p ${redis.port}`);
  },
  stepMs,
);
