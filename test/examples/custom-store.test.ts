import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import Database from 'libsql';
import type { ClaimRequest } from 'transfer-callbacks';
import { storeContract } from 'transfer-callbacks/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sqliteStore } from '../../examples/custom-store.js';
import { root } from '../docs/pages.js';

let directory: string;
let file: string;
const databases: Database.Database[] = [];

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'transfer-callbacks-sqlite-'));
  file = join(directory, 'callbacks.sqlite');
  connect().pragma('journal_mode = WAL');
});
afterAll(async () => {
  for (const database of databases) database.close();
  await rm(directory, { recursive: true });
});

/** Opens the file as an app would; but without waiting for the disk, which would make the tests slow. */
function connect(timeout = 20_000): Database.Database {
  const database = new Database(file, { timeout });
  database.exec('PRAGMA synchronous = OFF');
  databases.push(database);
  return database;
}

/** Runs Node as a user of the example would. Resolves with what it prints. */
async function node(...given: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, ['--import', 'tsx', ...given], { cwd: root });
  return stdout;
}

/** A claim on a callback that no other test uses. */
async function leaseOn(asked: ClaimRequest) {
  const database = connect();
  const store = sqliteStore(database);
  const key = crypto.randomUUID();
  const claim = await store.claim(key, asked);
  if (claim.state !== 'claimed') throw new Error(`A new callback is ${claim.state}.`);
  return { database, store, lease: { key, ...claim.lease } };
}

function request(token: string, other: Partial<ClaimRequest> = {}): ClaimRequest {
  return { token, fingerprint: `facts of ${token}`, leaseMs: 30_000, retentionMs: 30_000, ...other };
}

describe('the store contract', () => {
  test.concurrent.each(storeContract)('$title', ({ check }) => check(sqliteStore(connect())));
});

describe('the store contract, through two connections to the same file', () => {
  test.concurrent.each(storeContract)('$title', ({ check }) =>
    check(sqliteStore(connect()), { other: sqliteStore(connect()) }),
  );
});

test('exactly one of three processes wins each of 100 callbacks in the same file', async () => {
  const run = crypto.randomUUID();
  const claimAll = `
    import { setTimeout } from 'node:timers/promises';
    import Database from 'libsql';
    import { sqliteStore } from './examples/custom-store.ts';
    const [, file, run] = process.argv;
    const database = new Database(file, { timeout: 20_000 });
    database.exec('PRAGMA synchronous = OFF');
    const store = sqliteStore(database);
    const request = { token: String(process.pid), fingerprint: '', leaseMs: 30_000, retentionMs: 30_000 };
    await store.claim(run + '-ready-' + process.pid, request);
    const ready = database.prepare("SELECT count(*) AS processes FROM transfer_callbacks WHERE id LIKE ? || '-ready-%'");
    while (ready.get(run).processes < 3) await setTimeout(1);
    for (let callback = 0; callback < 100; callback += 1) {
      const { state } = await store.claim(run + '-' + callback, request);
      if (state === 'claimed') console.log(callback);
      await setTimeout(1);
    }`;
  const outputs = await Promise.all(
    ['one', 'two', 'three'].map(() => node('--input-type=module', '--eval', claimAll, file, run)),
  );
  const won = outputs.flatMap((output) => output.split('\n').filter(Boolean).map(Number));
  expect(won.sort((a, b) => a - b)).toEqual(Array.from({ length: 100 }, (_, callback) => callback));
});

test('a claim that finds the file locked for longer than its timeout rejects, and the next one succeeds', async () => {
  const other = connect();
  const store = sqliteStore(connect(50));
  const key = crypto.randomUUID();
  other.exec('BEGIN IMMEDIATE');
  await expect(store.claim(key, request('a'))).rejects.toMatchObject({ code: 'SQLITE_BUSY' });
  other.exec('COMMIT');
  expect((await store.claim(key, request('a'))).state).toBe('claimed');
});

test('a lease that has lapsed cannot be renewed, and settling it is reported as overlapped', async () => {
  const { store, lease } = await leaseOn(request('a', { leaseMs: 1 }));
  await setTimeout(5);
  expect(await lease.renew()).toBe(false);
  expect(await lease.settle()).toEqual({ overlapped: true });
  expect(await lease.settle()).toEqual({ overlapped: true });
  expect((await store.claim(lease.key, request('b'))).state).toBe('settled');
});

test('a renewal that comes after settling does not shorten the retention', async () => {
  const { store, lease } = await leaseOn(request('a', { leaseMs: 1_000 }));
  await lease.settle();
  expect(await lease.renew()).toBe(false);
  await setTimeout(1_100);
  expect((await store.claim(lease.key, request('b'))).state).toBe('settled');
});

test('a lapsed claim is free even when more has expired than a claim deletes', async () => {
  const { store, database } = await leaseOn(request('a'));
  const run = crypto.randomUUID();
  const insert = database.prepare('INSERT INTO transfer_callbacks VALUES (?, ?, NULL, ?)');
  for (let index = 0; index < 20; index += 1) insert.run(`${run}-${index}`, 'dead', index);
  expect((await store.claim(`${run}-19`, request('b'))).state).toBe('claimed');
});

test('claims delete what has expired', async () => {
  const { database, store, lease } = await leaseOn(request('a', { retentionMs: 1 }));
  const { key } = lease;
  await lease.settle();
  const rows = database.prepare('SELECT id FROM transfer_callbacks WHERE id = ?');
  expect(rows.get(key)).toMatchObject({ id: key });
  await expect
    .poll(async () => {
      await store.claim(crypto.randomUUID(), request('b', { leaseMs: 1 }));
      return rows.get(key);
    })
    .toBeUndefined();
});

test('the example receives a callback twice and acts on it once', async () => {
  expect(await node('examples/custom-store.ts')).toBe(
    'The first delivery: processed\nThe second delivery: duplicate\n',
  );
});
