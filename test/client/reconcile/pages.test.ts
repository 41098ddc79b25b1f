// The page queries of docs/reconciliation.md on pg and mysql2. Those of other libraries: test/sql/pages.test.ts.
import { createPool } from 'mysql2/promise';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { createIndex, expectPages, findOpenPayouts, tables } from '../../support/helpers/page-queries.js';
import { startMariaDb, type MySqlServer } from '../../support/servers/mysql.js';
import { startPostgres, type PostgresServer } from '../../support/servers/postgres.js';

let postgres: PostgresServer;
let mariaDb: MySqlServer;
beforeAll(async () => {
  [postgres, mariaDb] = await Promise.all([startPostgres(18), startMariaDb()]);
});
afterAll(() => Promise.all([postgres.stop(), mariaDb.stop()]));

const createdAt = '2026-01-15 10:30:00.123456';

test('the page query for pg reads each of 25 payouts of one microsecond once, and uses its index', async () => {
  const pool = postgres.pool();
  await pool.query(tables.postgres);
  const sent: { sql: string; given: unknown[] }[] = [];
  class Pool {
    query(sql: string, given: unknown[]): unknown {
      sent.push({ sql, given });
      return pool.query(sql, given);
    }
  }
  await expectPages(findOpenPayouts('pg', { pg: { Pool } }));
  // Three pages and the empty one, and for 12 and 13 payouts two and three.
  expect(sent).toHaveLength(4 + 2 + 3);

  await pool.query(`${createIndex};
    INSERT INTO payouts SELECT 'q' || n, '2026-01-15 11:00:00.000001+00'::timestamptz + n * interval '1 ms' FROM generate_series(1, 20000) n;
    ANALYZE payouts`);
  const [{ sql, given } = expect.fail('no query')] = sent.slice(-1);
  const { rows } = await pool.query<{ 'QUERY PLAN': string }>(`EXPLAIN ${sql}`, given);
  const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
  expect(plan).toMatch(/Index (Only )?Scan using payouts_open[^]*Index Cond: \(ROW\(created_at, id\) > ROW\(/);
  expect(plan).not.toContain('Sort');
});

test('the page query for mysql2 reads each of 25 payouts of one microsecond once, and uses its index', async () => {
  const pool = createPool({ uri: mariaDb.url, multipleStatements: true });
  onTestFinished(() => pool.end());
  await pool.query(tables.mysql);
  const sent: { sql: string; given: string[] }[] = [];
  const execute = (sql: string, given: string[]): unknown => {
    sent.push({ sql, given });
    return pool.execute(sql, given);
  };
  await expectPages(findOpenPayouts('mysql2/promise', { 'mysql2/promise': { createPool: () => ({ execute }) } }));
  expect(sent).toHaveLength(4 + 2 + 3);

  const rows = Array.from({ length: 20_000 }, (_, n) => `('q${n}', '${createdAt}' + INTERVAL ${n} SECOND)`).join();
  await pool.query(
    `${createIndex.replace(/ WHERE.*/s, '')}; INSERT INTO payouts (id, created_at) VALUES ${rows}; ANALYZE TABLE payouts`,
  );
  const [{ sql, given } = expect.fail('no query')] = sent.slice(-1);
  const [plan] = await pool.execute(`EXPLAIN ${sql}`, given);
  expect(plan).toMatchObject([{ type: 'range', key: 'payouts_open' }]);
  expect(JSON.stringify(plan)).not.toContain('filesort');
});
