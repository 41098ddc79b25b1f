// The page queries of docs/reconciliation.md on Prisma, Drizzle, postgres.js and MySQL. Those on pg and mysql2 are in
// test/client.
import { and, isNull, sql } from 'drizzle-orm';
import { drizzle as drizzlePg } from 'drizzle-orm/node-postgres';
import { pgTable, text, timestamp } from 'drizzle-orm/pg-core';
import { drizzle as drizzlePostgresJs } from 'drizzle-orm/postgres-js';
import { createPool } from 'mysql2/promise';
import postgresJs from 'postgres';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { createIndex, expectPages, findOpenPayouts, tables } from '../support/helpers/page-queries.js';
import { startMySql } from '../support/servers/mysql.js';
import { startPostgres, type PostgresServer } from '../support/servers/postgres.js';
import type { Library } from './opened.js';
import { prisma6, prisma7 } from './prisma.js';

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres(18);
  await server.pool().query(tables.postgres);
});
afterAll(() => server.stop());

const time = (name: string) => timestamp(name, { withTimezone: true });
const payouts = pgTable('payouts', {
  id: text().primaryKey(),
  createdAt: time('created_at'),
  paidAt: time('paid_at'),
  failedAt: time('failed_at'),
});

test.each([prisma7, prisma6])(
  'the page query for Prisma reads each payout once, on $name',
  async ({ open }: Library) => {
    const { client, close } = (await open.postgres?.(server.url, 2)) ?? expect.fail('no PostgreSQL');
    onTestFinished(async () => {
      await close();
    });
    await expectPages(findOpenPayouts('prisma.$queryRaw', {}, { prisma: client }));
  },
);

test('the page query for Drizzle reads each payout once, on pg and on postgres.js', async () => {
  const client = postgresJs(server.url, { max: 2 });
  onTestFinished(() => client.end());
  for (const db of [drizzlePg(server.pool()), drizzlePostgresJs(client)]) {
    await expectPages(findOpenPayouts('.from(payouts)', {}, { db, payouts, sql, and, isNull }));
  }
});

test('the page query for pg reads each payout once on postgres.js, which would make a Date of a time', async () => {
  const client = postgresJs(server.url, { max: 2 });
  onTestFinished(() => client.end());
  class Pool {
    async query(text: string, given: string[]) {
      return { rows: await client.unsafe(text, given) };
    }
  }
  await expectPages(findOpenPayouts('pg', { pg: { Pool } }));
});

test('the page query for mysql2 reads each payout once and uses its index, on MySQL', async () => {
  const mysql = await startMySql();
  const pool = createPool({ uri: mysql.url, multipleStatements: true });
  onTestFinished(async () => {
    await pool.end();
    await mysql.stop();
  });
  await pool.query(tables.mysql);
  const sent: [sql: string, given: string[]][] = [];
  const execute = (...query: [string, string[]]): unknown => {
    sent.push(query);
    return pool.execute(...query);
  };
  await expectPages(findOpenPayouts('mysql2/promise', { 'mysql2/promise': { createPool: () => ({ execute }) } }));
  const rows = Array.from(
    { length: 20_000 },
    (_, n) => `('q${n}', '2026-01-15 11:00:00.000001' + INTERVAL ${n} SECOND)`,
  );
  await pool.query(`${createIndex.replace(/ WHERE.*/s, '')};
    INSERT INTO payouts (id, created_at) VALUES ${rows.join()}; ANALYZE TABLE payouts`);
  const [text = '', given] = sent.at(-1) ?? [];
  const [plan] = await pool.execute(`EXPLAIN ${text}`, given);
  expect(JSON.stringify(plan)).toContain('Index range scan on payouts using payouts_open over');
});
