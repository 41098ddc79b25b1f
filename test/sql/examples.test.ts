// The examples on libraries that test/sql installs. On pg and mysql2, and on Node 20: test/examples.
import { execFile } from 'node:child_process';
import { copyFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { drizzle } from 'drizzle-orm/node-postgres';
import { createPool } from 'mysql2/promise';
import postgresJs from 'postgres';
import { expect, onTestFinished, test, describe, beforeAll } from 'vitest';
import { runMigrations } from 'graphile-worker';
import { PgBoss } from 'pg-boss';
import { pgStore } from 'transfer-callbacks';
import { mysql, postgres } from '../../examples/open-payouts.js';
import { createdMs, createIndex, expectPages, inTens, tables } from '../support/helpers/page-queries.js';
import { startMySql } from '../support/servers/mysql.js';
import { startPostgresForFile } from '../support/servers/postgres-for-file.js';
import type { Library } from './opened.js';
import { prisma6, prisma7 } from './prisma.js';
import { expectOneJob, expectOneJobOfBoss } from '../examples/postgres-queue.js';
import { removeTemporary } from '../support/programs/child.js';
import { makeFolder } from '../support/servers/server.js';
import { readText, root } from '../docs/pages.js';

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

// The queues of examples/postgres-queue.ts in the versions that need Node 22.
describe.skipIf(Number.parseInt(process.versions.node) < 22)('on Node 22 and later', () => {
  const server = startPostgresForFile((started) => pgStore(started.pool()).migrate());

  test('each callback has one job of graphile-worker 0.18, and a handler that throws leaves none', async () => {
    const pool = server.pool();
    await runMigrations({ pgPool: pool });
    await expectOneJob(pool);
  });

  test('pg-boss 12 joins the transaction through its db option', async () => {
    const boss = new PgBoss({ connectionString: server.url, schedule: false, supervise: false });
    await expectOneJobOfBoss(server.pool(), boss);
  });
});

const run = promisify(execFile);
const modules = fileURLToPath(new URL('node_modules', import.meta.url));
const schema = readText('examples/prisma/schema.prisma');

describe('examples/prisma', () => {
  const server = startPostgresForFile();
  let folder: string;

  // A copy, so that nothing is generated into the repository.
  beforeAll(async () => {
    folder = await makeFolder();
    await symlink(modules, join(folder, 'node_modules'));
    for (const file of ['package.json', 'old-code.ts', 'prisma.ts', 'schema.prisma']) {
      await copyFile(join(root, 'examples/prisma', file), join(folder, file));
    }
    const config = { extends: join(root, 'tsconfig.json'), include: ['*.ts'], exclude: [] };
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(config));
    await run(process.execPath, [join(modules, 'prisma/build/index.js'), 'generate'], {
      cwd: folder,
      // Prisma would download the engine of its migrations, which the example does not need.
      env: { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath },
    });
    return () => removeTemporary(folder);
  }, 300_000);

  async function runExample(file = 'prisma.ts'): Promise<string> {
    const tsx = join(root, 'node_modules/tsx/dist/loader.mjs');
    const { stdout } = await run(process.execPath, ['--import', tsx, file], {
      cwd: folder,
      env: { ...process.env, DATABASE_URL: server.url },
    });
    return stdout;
  }

  test('the examples compile', async () => {
    const compiler = join(root, 'node_modules/typescript/bin/tsc');
    const { stdout } = await run(process.execPath, [compiler, '-p', folder]).catch(
      (error: unknown) => error as { stdout: string },
    );
    expect(stdout).toBe('');
  }, 300_000);

  test('the example books a callback that comes twice once, and exits, in repeated runs', async () => {
    for (let runs = 0; runs < 2; runs += 1) {
      const stdout = await runExample();
      expect(stdout).toMatch(/^The first delivery: processed\nThe second delivery: duplicate\n\[\n {2}\{\n/);
      expect(stdout.match(/status: 'SUCCESS'/g)).toHaveLength(1);
    }
  });

  test('old code without `tx` books in the transaction of its handler, with fewer connections than callbacks', async () => {
    expect(await runExample('old-code.ts')).toBe('20 of 20 processed, and booked:\n20\n');
  });

  test('the model has the columns of the table', async () => {
    await runExample();
    const { rows } = await server.pool().query<{ name: string; type: string; optional: string }>(
      `SELECT column_name AS name, data_type AS type, CASE is_nullable WHEN 'YES' THEN '?' ELSE '' END AS optional
         FROM information_schema.columns WHERE table_name = 'transfer_callbacks' ORDER BY ordinal_position`,
    );
    expect(findColumns(schema)).toEqual(rows.map(({ name, type, optional }) => `${name} ${type}${optional}`));
  });
});

const types: Readonly<Record<string, string>> = { String: 'text', BigInt: 'bigint' };

/** Returns the columns of the model of the store's table, as `name type`, with `?` if it may be null. */
function findColumns(text: string): string[] {
  const [, model = ''] = /^model TransferCallbackRecord \{\n(.*?)\n\n/ms.exec(text) ?? [];
  return model.split('\n').map((line) => {
    const [, name = '', type = '', optional = ''] = /^ *(\w+) +(\w+)(\??)/.exec(line) ?? [];
    return `${/@map\("(\w+)"\)/.exec(line)?.[1] ?? name} ${types[type]}${optional}`;
  });
}
