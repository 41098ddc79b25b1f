// examples/open-payouts.ts on pg and mysql2. On other libraries: test/sql/examples.test.ts.
import { createPool } from 'mysql2/promise';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { mysql, postgres } from '../../examples/open-payouts.js';
import { createdMs, createIndex, expectPages, inTens, tables } from '../support/helpers/page-queries.js';
import { startMariaDb, type MySqlServer } from '../support/servers/mysql.js';
import { startPostgres, type PostgresServer } from '../support/servers/postgres.js';

let server: PostgresServer;
let mariaDb: MySqlServer;
beforeAll(async () => {
  [server, mariaDb] = await Promise.all([startPostgres(18), startMariaDb()]);
});
afterAll(() => Promise.all([server.stop(), mariaDb.stop()]));

const createdAt = '2026-01-15 10:30:00.123456';

test('the page query for pg reads each of 25 payouts of one microsecond once, and uses its index', async () => {
  const pool = server.pool();
  await pool.query(tables.postgres);
  const sent: string[][] = [];
  const created = await expectPages(async ({ at, id }) => {
    sent.push([at, id]);
    return (await pool.query<object>(inTens(postgres), [at, id])).rows;
  });
  expect(created).toEqual(new Set([createdMs]));
  // Three pages and the empty one, and for 12 and 13 payouts two and three.
  expect(sent).toHaveLength(4 + 2 + 3);

  await pool.query(`${createIndex};
    INSERT INTO payouts SELECT 'q' || n, '2026-01-15 11:00:00.000001+00'::timestamptz + n * interval '1 ms' FROM generate_series(1, 20000) n;
    ANALYZE payouts`);
  const { rows } = await pool.query<{ 'QUERY PLAN': string }>(`EXPLAIN ${inTens(postgres)}`, sent.at(-1));
  const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
  expect(plan).toMatch(/Index (Only )?Scan using payouts_open[^]*Index Cond: \(ROW\(created_at, id\) > ROW\(/);
  expect(plan).not.toContain('Sort');
});

test('the page query for mysql2 reads each of 25 payouts of one microsecond once, and uses its index', async () => {
  const pool = createPool({ uri: mariaDb.url, multipleStatements: true });
  onTestFinished(() => pool.end());
  await pool.query(tables.mysql);
  const sent: string[][] = [];
  await expectPages(async ({ at, id }) => {
    sent.push([at, at, id]);
    return (await pool.execute(inTens(mysql), [at, at, id]))[0];
  });
  expect(sent).toHaveLength(4 + 2 + 3);

  const rows = Array.from({ length: 20_000 }, (_, n) => `('q${n}', '${createdAt}' + INTERVAL ${n} SECOND)`).join();
  await pool.query(
    `${createIndex.replace(/ WHERE.*/s, '')}; INSERT INTO payouts (id, created_at) VALUES ${rows}; ANALYZE TABLE payouts`,
  );
  const [plan] = await pool.execute(`EXPLAIN ${inTens(mysql)}`, sent.at(-1) ?? []);
  expect(plan).toMatchObject([{ type: 'range', key: 'payouts_open' }]);
  expect(JSON.stringify(plan)).not.toContain('filesort');
});
