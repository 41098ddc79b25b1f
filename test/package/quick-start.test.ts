import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { post } from '../support/helpers/post.js';
import { startPostgres, type PostgresServer } from '../support/servers/postgres.js';
import { findCommand, packages, readBookings, secret, startQuickStart } from './quick-start.js';
import { install, makeWorkshop, packageName, start, stepMs } from './support.js';

// The first minute of a reader: the commands and the code of the README, in an empty folder.

let workshop: string;
let app: string;
let postgres: PostgresServer;
let server: Awaited<ReturnType<typeof startQuickStart>>;

beforeAll(async () => {
  workshop = await makeWorkshop();
  app = join(workshop, 'app');
  await mkdir(app);
  const versions = packages.map((name) => [name, name === packageName ? `file:${inject('tarball')}` : '*']);
  // The reader's npx installs the sandbox when it is first asked for it.
  const sandbox = { 'transfer-sandbox': `file:${inject('sandboxTarball')}` };
  await install(app, { dependencies: { ...(Object.fromEntries(versions) as object), ...sandbox } });
  postgres = await startPostgres();
  server = await startQuickStart(app, postgres.url);
}, stepMs);

afterAll(async () => {
  await server.stop();
  await postgres.stop();
  await rm(workshop, { recursive: true, force: true });
});

test(
  'the code of the README passes the check of the README, and books nothing twice',
  { timeout: stepMs },
  async () => {
    const check = findCommand('npx transfer-sandbox check').replace(':3000/', `:${server.port}/`);
    const { code, stdout } = await start('bash', ['-c', check], app, { CALLBACK_SECRET: secret });
    expect(stdout).toContain('12 right, 0 wrong');
    expect(code).toBe(0);
    const booked = await readBookings(postgres);
    expect(booked.length).toBeGreaterThan(5);
    expect(booked).toEqual([...new Set(booked)]);
  },
);

test('the code of the README takes no callback without the secret', async () => {
  const callback = transferSucceeded();
  expect((await post(server.url.replace(secret, 'a-guess'), callback)).status).toBe(401);
  expect(await readBookings(postgres)).not.toContain(callback.data.externalId);
  expect((await post(server.url, callback)).status).toBe(200);
  expect(await readBookings(postgres)).toContain(callback.data.externalId);
});
