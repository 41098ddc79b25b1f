// examples/open-payouts.ts on Prisma, Drizzle, postgres.js and MySQL. On pg and mysql2: test/examples.
import { drizzle } from 'drizzle-orm/node-postgres';
import { createPool } from 'mysql2/promise';
import postgresJs from 'postgres';
import { expect, onTestFinished, test } from 'vitest';
import { mysql, postgres } from '../../examples/open-payouts.js';
import { createdMs, createIndex, expectPages, inTens, tables } from '../support/helpers/page-queries.js';
import { startMySql } from '../support/servers/mysql.js';
import { startPostgresForFile } from '../support/servers/postgres-for-file.js';
import type { Library } from './opened.js';
import { prisma6, prisma7 } from './prisma.js';

const server = startPostgresForFile((started) => started.pool().query(tables.postgres));

interface Prisma {
  $queryRawUnsafe(query: string, ...values: string[]): Promise<unknown>;
}

test.each([prisma7, prisma6])(
  'the page query reads each payout once by Prisma, on $name',
  async ({ open }: Library) => {
    const { client, close } = (await open.postgres?.(server.url, 2)) ?? expect.fail('no PostgreSQL');
    onTestFinished(async () => {
      await close();
    });
    const prisma = client as Prisma;
    const created = await expectPages(({ at, id }) => prisma.$queryRawUnsafe(inTens(postgres), at, id));
    expect(created).toEqual(new Set([createdMs]));
  },
);

test('the page query reads each payout once by the pool of Drizzle', async () => {
  const { $client } = drizzle(server.pool());
  const created = await expectPages(
    async ({ at, id }) => (await $client.query<object>(inTens(postgres), [at, id])).rows,
  );
  expect(created).toEqual(new Set([createdMs]));
});

test('the page query reads each payout once by postgres.js, which would make a Date of a time', async () => {
  const sql = postgresJs(server.url, { max: 2 });
  onTestFinished(() => sql.end());
  const created = await expectPages(({ at, id }) => sql.unsafe(inTens(postgres), [at, id]));
  expect(created).toEqual(new Set([createdMs]));
});

test('the page query for mysql2 reads each payout once and uses its index, on MySQL', async () => {
  const mysqlServer = await startMySql();
  const pool = createPool({ uri: mysqlServer.url, multipleStatements: true });
  onTestFinished(async () => {
    await pool.end();
    await mysqlServer.stop();
  });
  await pool.query(tables.mysql);
  const sent: string[][] = [];
  await expectPages(async ({ at, id }) => {
    sent.push([at, at, id]);
    return (await pool.execute(inTens(mysql), [at, at, id]))[0];
  });
  const rows = Array.from(
    { length: 20_000 },
    (_, n) => `('q${n}', '2026-01-15 11:00:00.000001' + INTERVAL ${n} SECOND)`,
  );
  await pool.query(`${createIndex.replace(/ WHERE.*/s, '')};
    INSERT INTO payouts (id, created_at) VALUES ${rows.join()}; ANALYZE TABLE payouts`);
  const [plan] = await pool.execute(`EXPLAIN ${inTens(mysql)}`, sent.at(-1));
  expect(JSON.stringify(plan)).toContain('Index range scan on payouts using payouts_open over');
});
