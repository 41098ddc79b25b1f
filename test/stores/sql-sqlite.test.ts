import { join } from 'node:path';
import Database from 'libsql';
import { sqlStore } from 'transfer-callbacks';
import { storeContract } from 'transfer-callbacks/testing';
import { beforeAll, describe, expect, test } from 'vitest';
import { containing } from '../support/helpers/containing.js';
import { removeTemporary } from '../support/programs/child.js';
import { makeFolder } from '../support/servers/server.js';
import { claimFree, requestOf } from './support.js';
import type { SqliteDatabase } from '../../src/stores/sql/sql-store.js';

/** What drivers of SQLite have in common. */
interface Driver {
  exec(sql: string): unknown;
  prepare(sql: string): { all(): unknown; run(): unknown };
}

/** Node has a driver from version 22 on. */
const nodeDriver = ['node', 'sqlite'].join(':');
const { DatabaseSync } = (await import(nodeDriver).catch(() => ({}))) as {
  DatabaseSync?: new (file: string) => Driver;
};

const drivers: [string, new (file: string) => Driver][] = [['libsql', Database]];
if (DatabaseSync !== undefined) drivers.push(['node:sqlite', DatabaseSync]);

describe.each(drivers)('SQLite through %s', (name, Driver) => {
  let file: string;
  beforeAll(async () => {
    const folder = await makeFolder();
    file = join(folder, 'callbacks.db');
    open().exec('PRAGMA journal_mode = WAL');
    await makeStore().migrate();
    return () => removeTemporary(folder);
  });

  function open(): Driver {
    const driver = new Driver(file);
    driver.exec('PRAGMA busy_timeout = 5000; PRAGMA synchronous = OFF');
    return driver;
  }

  function toDatabase(driver: Driver): SqliteDatabase {
    return {
      dialect: 'sqlite',
      query: (sql) => {
        const statement = driver.prepare(sql);
        return /^SELECT|RETURNING id$/.test(sql) ? statement.all() : statement.run();
      },
    };
  }

  function makeStore(options = {}) {
    return sqlStore(toDatabase(open()), options);
  }

  test.concurrent.each(storeContract)('two connections keep the contract: $title', ({ check }) =>
    check(makeStore(), { other: makeStore() }),
  );

  test('the error of a missing table names the table and the code to write', async () => {
    await expect(makeStore({ table: 'not_there' }).claim('an id', requestOf('a'))).rejects.toMatchObject({
      code: 'NO_TABLE',
      message: containing('The table `not_there` does not exist. Call `await store.migrate()` when the app starts'),
      cause: expect.any(Error) as Error,
    });
  });

  test('a claim that has passed on is still told of when the reply to its settle was lost', async () => {
    const driver = open();
    let isCut = false;
    const database = toDatabase(driver);
    const store = sqlStore({
      dialect: 'sqlite',
      query(sql) {
        const rows = database.query(sql);
        if (isCut && /^UPDATE .* token = /.test(sql)) throw new Error('The reply was lost.');
        return rows;
      },
    });
    const id = `lost reply ${name}`;
    const first = await claimFree(store, { token: 'first' }, id);
    driver.exec(`UPDATE transfer_callbacks SET expires_at = 1 WHERE id = '${id}'`);
    expect((await makeStore().claim(id, requestOf('next'))).state).toBe('claimed');
    isCut = true;
    await expect(first.settle()).rejects.toThrow('The reply was lost.');
    isCut = false;
    expect(await first.settle()).toEqual({ overlapped: true });
  });

  test('a claim is read with the process that holds it, if its token names one', async () => {
    const store = makeStore();
    for (const [token, by] of [
      ['2026-10-05T02:58:12.113Z/payouts-7f9c/41/k3x9q2h1-17', 'payouts-7f9c, process 41'],
      ['another token', undefined],
    ] as const) {
      const id = `${token} ${name}`;
      expect(await store.claim(id, requestOf(token))).toMatchObject({ state: 'claimed' });
      const record = await store.read(id);
      expect(record).toMatchObject({ state: 'claimed', delivery: token });
      expect('by' in record ? record.by : undefined).toBe(by);
    }
  });

  test('the table can have any name, `migrate` may be called again, and `prune` deletes what is old', async () => {
    const store = makeStore({ table: 'callbacks\' "table"' });
    await store.migrate();
    await store.migrate();
    open().exec(`INSERT INTO "callbacks' ""table""" (id, token, event, external_id, claimed_at, expires_at)
      WITH RECURSIVE ids (id) AS (VALUES (1) UNION ALL SELECT id + 1 FROM ids WHERE id < 1500)
      SELECT id, 'a', '', '', 0, 1000 FROM ids`);
    expect(await store.prune({ olderThanMs: 90_001 })).toBe(1_500);
    expect(await store.prune({ olderThanMs: 90_001 })).toBe(0);
  });
});
