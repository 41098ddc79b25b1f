import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from 'vitest';
import { post } from '../support/helpers/post.js';
import { startPostgres } from '../support/servers/postgres.js';
import { findPsql } from '../support/servers/postgres-programs.js';
import { findCli } from '../support/servers/redis.js';
import {
  findApp,
  findCheck,
  findServiceApp,
  findServiceCheck,
  install,
  installed,
  makeWorkshop,
  packageName,
  packages,
  secret,
  start as run,
  startApp,
  stepMs,
} from './support.js';
import { startRedisForTest } from '../support/servers/redis-for-file.js';

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

/** Starts the app of these pages on a store, until the test has ended. */
async function start(store: 'memory' | 'pg' | 'redis', environment: NodeJS.ProcessEnv = {}) {
  const folder = join(workshop, store);
  await mkdir(folder, { recursive: true });
  const app = await startApp(folder, findApp(store), environment);
  onTestFinished(app.stop);
  return { ...app, folder };
}

/** Runs a check of the README, or of docs/stores.md. Expects that it sees nothing wrong. */
async function runCheck(command: string, folder: string, environment: NodeJS.ProcessEnv = {}): Promise<string> {
  const env = { ...environment, CALLBACK_SECRET: secret };
  const { code, stdout, stderr } = await run('bash', ['-c', command], folder, env);
  expect(code, stdout + stderr).toBe(0);
  expect(stdout).not.toContain('✗');
  return stdout;
}

const allRight = '19 right, 0 wrong, 0 not seen.';

test(
  'the first app of the README handles each transfer once, and needs no database',
  async () => {
    const { url, folder } = await start('memory');
    const paid = transferSucceeded({ externalId: 'payout-1' });
    const failed = transferFailed({ externalId: 'payout-2', failureReason: 'Wallet closed' });
    for (const outcome of ['processed', 'duplicate']) {
      for (const callback of [paid, failed]) {
        expect(await post(url, callback)).toMatchObject({ status: 200, body: JSON.stringify({ outcome }) });
      }
    }
    const forged = transferSucceeded({ externalId: 'payout-3' });
    expect((await post(url.replace(secret, 'a-guess'), forged)).status).toBe(401);
    const booked = await readFile(join(folder, 'ledger.txt'), 'utf8');
    expect(booked).toBe('payout-1 SUCCESS\npayout-2 FAILED Wallet closed\n');
  },
  stepMs,
);

test(
  'the app of the README on PostgreSQL writes through `tx`, knows its transfers after a restart, and passes all of `check`',
  async () => {
    const postgres = await startPostgres();
    onTestFinished(() => postgres.stop());
    const environment = { DATABASE_URL: postgres.url };
    const before = await start('pg', environment);
    const paid = transferSucceeded({ externalId: 'payout-1' });
    expect((await post(before.url, paid)).body).toBe('{"outcome":"processed"}');
    await before.stop();
    const { url, port, folder } = await start('pg', environment);
    expect((await post(url, paid)).body).toBe('{"outcome":"duplicate"}');
    const { rows } = await postgres.pool().query('SELECT payout, entry FROM ledger');
    expect(rows).toEqual([{ payout: 'payout-1', entry: 'SUCCESS' }]);

    const cli = await findPsql();
    const printed = await runCheck(
      findCheck(port, 'psql').replace('psql', () => cli),
      folder,
      environment,
    );
    expect(printed).toContain(allRight);
  },
  stepMs,
);

test(
  'the app of docs/stores.md on Redis has its prefix, writes nothing new if it runs again, and passes all of `check`',
  async () => {
    const redis = await startRedisForTest();
    const environment = { REDIS_URL: redis.url };
    const { url, port, folder } = await start('redis', environment);
    const paid = transferSucceeded({ externalId: 'payout-1' });
    expect((await post(url, paid)).body).toBe('{"outcome":"processed"}');
    const booked = await redis.command('hgetall', 'ledger');
    expect(booked).toMatchObject({ [`paid ${paid.data.id}`]: 'payout-1 SUCCESS' });
    const key = `payouts-production:${paid.data.id}`;
    expect(await redis.command('del', key)).toBe(1);
    const again = { ...paid, data: { ...paid.data, externalId: 'payout-9' } };
    expect((await post(url, again)).body).toBe('{"outcome":"processed"}');
    expect(await redis.command('hgetall', 'ledger')).toEqual(booked);
    // After a success of the id that was lost, a refund is not taken for its copy.
    expect(await redis.command('del', key)).toBe(1);
    const refunded = transferFailed({ id: paid.data.id, externalId: 'payout-1', failureReason: 'Wallet closed' });
    expect((await post(url, refunded)).body).toBe('{"outcome":"processed"}');
    expect(await redis.command('hget', 'ledger', `refund ${paid.data.id}`)).toBe('payout-1 FAILED');

    const cli = `${await findCli()} -p ${redis.port}`;
    const printed = await runCheck(
      findCheck(port, 'redis-cli').replace('redis-cli', () => cli),
      folder,
    );
    expect(printed).toContain(allRight);
  },
  stepMs,
);

test(
  'the app of the README for a service by its name does all that `check` plays of it',
  async () => {
    const folder = join(workshop, 'service');
    await mkdir(folder);
    const app = await startApp(folder, findServiceApp());
    onTestFinished(app.stop);
    expect(await runCheck(findServiceCheck(app.port), folder)).toMatch(/^✓ reversed /m);
  },
  stepMs,
);
