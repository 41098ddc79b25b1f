import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { createPool } from 'mysql2/promise';
import { mysqlStore } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { receiverOf } from '../core/support.js';
import { book } from '../../examples/mysql.js';
import { startMariaDb, type MySqlServer } from '../support/servers/mysql.js';
import { readText, root } from '../docs/pages.js';

let server: MySqlServer;
/** The first run of the example, which creates its tables. */
let first: { stdout: string };
beforeAll(async () => {
  server = await startMariaDb();
  first = await run();
});
afterAll(() => server.stop());

function run(): Promise<{ stdout: string }> {
  return promisify(execFile)(process.execPath, ['--import', 'tsx', 'examples/mysql.ts'], {
    cwd: root,
    env: { ...process.env, DATABASE_URL: server.url },
  });
}

describe('mysql.ts', () => {
  test('the example books a callback that comes twice once, and exits, in repeated runs', async () => {
    for (const { stdout } of [first, await run()]) {
      expect(stdout).toMatch(/^The first delivery: processed\nThe second delivery: duplicate\n\[\n {2}\{\n/);
      expect(stdout.match(/status: 'SUCCESS'/g)).toHaveLength(1);
    }
  });

  test('a handler that books and then throws leaves no row, and the next delivery books it', async () => {
    const pool = createPool(server.url);
    const receiver = receiverOf({
      store: mysqlStore(pool),
      onFailed: book,
      async onSuccess(callback, context) {
        await book(callback, context);
        if (failures-- > 0) throw new Error('after booking');
      },
    });
    let failures = 1;
    const callback = transferSucceeded();
    const outcomes: string[] = [];
    const counts: number[] = [];
    for (let deliveries = 0; deliveries < 3; deliveries += 1) {
      outcomes.push((await receiver.receive(callback)).outcome);
      const [rows] = await pool.query('SELECT * FROM payouts WHERE callback_id = ?', [callback.data.id]);
      counts.push((rows as unknown[]).length);
    }
    expect(outcomes).toEqual(['handler_failed', 'processed', 'duplicate']);
    expect(counts).toEqual([0, 1, 1]);
    await pool.end();
  });

  test('the model for Prisma has the columns of the table', async () => {
    const pool = createPool(server.url);
    const [rows] = await pool.query(`SELECT column_name AS name, column_type AS type, is_nullable AS optional
      FROM information_schema.columns WHERE table_name = 'transfer_callbacks' ORDER BY ordinal_position`);
    await pool.end();
    const columns = (rows as { name: string; type: string; optional: string }[]).map(
      ({ name, type, optional }) => `${name} ${type.replace(/bigint.*/, 'bigint')}${optional === 'YES' ? '?' : ''}`,
    );
    expect(findColumns(readText('examples/prisma/mysql.prisma'))).toEqual(columns);
  });
});

/** Returns the columns of a model, as `name type`, with `?` if it may be null. */
function findColumns(model: string): string[] {
  const fields = model.split('\n').filter((line) => /^ {2}\w/.test(line));
  return fields.map((line) => {
    const [, name = '', type = '', optional = ''] = /^ *(\w+) +(\w+)(\??)/.exec(line) ?? [];
    const column = /@map\("(\w+)"\)/.exec(line)?.[1] ?? name;
    return `${column} ${(/@db\.(\S+)/.exec(line)?.[1] ?? type).toLowerCase()}${optional}`;
  });
}
