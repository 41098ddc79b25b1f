// What shares a connection between transactions: what makes no store of it, and what the store does on SQLite.
import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { Client as NeonClient, Pool as NeonPool } from '@neondatabase/serverless';
import { drizzle as drizzleMysql } from 'drizzle-orm/mysql2';
import { drizzle as drizzleNeon } from 'drizzle-orm/neon-serverless';
import { drizzle as drizzlePostgres } from 'drizzle-orm/node-postgres';
import { createConnection, createPool } from 'mysql2';
import { Client } from 'pg';
import { DataSource } from 'typeorm';
import { expect, onTestFinished, test } from 'vitest';
import { later } from '../core/support.js';
import { claimFree } from '../stores/support.js';
import { containing } from '../support/helpers/containing.js';
import { databases } from './databases.js';
import { makeStore } from './factories.js';
import { typeorm } from './orms.js';

const [onPostgres, onMysql] = ['postgres://payouts@127.0.0.1:1/payouts', 'mysql://payouts@127.0.0.1:1/payouts'];

/** A connection of mysql2 for callbacks, and one for promises. No server is there. */
const mysqlConnections = () => {
  const connection = createConnection(onMysql);
  connection.on('error', () => undefined);
  onTestFinished(() => {
    connection.destroy();
  });
  return [connection, connection.promise()] as const;
};

type Make = () => readonly unknown[];

// A pool of one connection of each library, and a transaction on it: stores.test.ts.
test.each<[name: string, dialect: 'postgres' | 'mysql', accepted: Make, refused: Make]>([
  ['@neondatabase/serverless', 'postgres', () => [], () => [new NeonClient()]],
  [
    'Drizzle',
    'postgres',
    () => [drizzlePostgres(onPostgres), drizzleNeon(new NeonPool({ max: 1 }))],
    () => [
      drizzlePostgres(new Client()),
      drizzlePostgres({ client: new Client() }),
      drizzleNeon(new NeonClient() as never),
    ],
  ],
  [
    'Drizzle',
    'mysql',
    () => [drizzleMysql(onMysql), drizzleMysql({ client: createPool({ uri: onMysql, connectionLimit: 1 }) })],
    () => mysqlConnections().map((client) => drizzleMysql({ client: client as never })),
  ],
  [
    'TypeORM',
    'postgres',
    () => [new DataSource({ type: 'postgres' }).manager],
    () => {
      const runner = new DataSource({ type: 'postgres' }).createQueryRunner();
      return [runner, runner.manager];
    },
  ],
])('a pool of %s on %s makes a store however it is made, and a single connection does not', (...row) => {
  const [name, dialect, accepted, refused] = row;
  for (const client of accepted()) expect(makeStore({ name }, client, dialect)).toMatchObject({ transactional: true });
  for (const client of refused()) {
    expect(() => makeStore({ name }, client, dialect)).toThrow(
      expect.objectContaining({ code: 'INVALID_ARGUMENT', message: containing('Write `') }),
    );
  }
});

test('a claim and a success are kept although TypeORM rolls a transaction of the app back on the same connection', async () => {
  const server = await (databases.find(({ dialect }) => dialect === 'sqlite') ?? expect.fail('no SQLite')).start();
  const { client, close } = (await typeorm.open.sqlite?.(server.url, 1)) ?? expect.fail('no TypeORM');
  onTestFinished(async () => {
    await close();
    await server.stop();
  });
  const source = client as DataSource;
  const store = makeStore(typeorm, source, 'sqlite');
  await store.migrate();

  /** Begins `work` while a transaction of the app is open, which is then rolled back. */
  const whileOpen = async <T>(work: () => Promise<T>): Promise<T> => {
    const [begun, goOn] = [later(), later()];
    const failed = source.transaction(async (manager) => {
      await manager.query("INSERT INTO written (name) VALUES ('of the app')");
      begun.resolve();
      await goOn.promise;
      throw new Error('the app rolls back');
    });
    failed.catch(() => undefined);
    await begun.promise;
    const working = work();
    // As long as one that does not wait needs by far.
    await Promise.race([working, setTimeout(200)]);
    goOn.resolve();
    await expect(failed).rejects.toThrow('the app rolls back');
    return working;
  };
  const id = randomUUID();
  const claim = await whileOpen(() => claimFree(store, {}, id));
  expect((await store.read(id)).state).toBe('claimed');
  expect(await whileOpen(() => claim.settle())).toEqual({ overlapped: false });
  expect((await store.read(id)).state).toBe('handled');
});
