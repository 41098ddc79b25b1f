import { randomUUID } from 'node:crypto';
import { Query, type Pool, type PoolClient } from 'pg';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startLedger, type PostgresServer } from '../support/postgres.js';
import { bookOnce, deliverOn, type Deliver, type Steps } from './handler-steps.js';
import { containing } from '../support/containing.js';

let server: PostgresServer;
let pool: Pool;
let deliver: Deliver;

beforeAll(async () => {
  const ledger = await startLedger({ max: 20 });
  ({ server, pool } = ledger);
  deliver = deliverOn(ledger);
});
afterAll(() => server.stop());

const ignore = (): void => undefined;

describe("a handler's own BEGIN, COMMIT and ROLLBACK work within the store's transaction", () => {
  test('a handler that rolls back its own transaction undoes only that, and the rest is committed with the record', async () => {
    const callback = transferSucceeded();
    const steps: Steps = async (tx, bookNow) => {
      await tx.query('BEGIN');
      await bookNow();
      await tx.query('ROLLBACK');
      await tx.query('START TRANSACTION');
      await bookNow();
      await tx.query('COMMIT');
    };
    expect(await deliver(callback, steps)).toEqual({ outcome: 'processed', booked: 1, recorded: 1 });
  });

  test('a handler that commits its own transaction and then throws writes nothing', async () => {
    const callback = transferSucceeded();
    const steps: Steps = async (tx, bookNow) => {
      await tx.query('BEGIN');
      await bookNow();
      await tx.query('COMMIT');
      throw new Error('after the commit');
    };
    expect(await deliver(callback, steps)).toMatchObject({ outcome: 'handler_failed', booked: 0, recorded: 0 });
    expect(await deliver(callback, bookOnce)).toMatchObject({ outcome: 'processed', booked: 1 });
  });

  test('a COMMIT after a failed statement is refused by Postgres, and a ROLLBACK then repairs the transaction', async () => {
    const callback = transferSucceeded();
    const failures: unknown[] = [];
    const steps: Steps = async (tx, bookNow) => {
      await tx.query('BEGIN');
      await tx.query('SELECT 1/0').catch(ignore);
      await tx.query('COMMIT').catch((error: unknown) => failures.push(error));
      await tx.query('ROLLBACK');
      await bookNow();
    };
    expect(await deliver(callback, steps)).toEqual({ outcome: 'processed', booked: 1, recorded: 1 });
    expect(failures).toMatchObject([{ code: '25P02' }]);
  });

  test('a handler that returns with its own transaction open is store_unavailable and writes nothing', async () => {
    const callback = transferSucceeded();
    const steps: Steps = async (tx, bookNow) => {
      await tx.query('BEGIN');
      await bookNow();
    };
    expect(await deliver(callback, steps)).toEqual({
      outcome: 'store_unavailable',
      code: 'TRANSACTION_CONTROL',
      booked: 0,
      recorded: 0,
    });
    expect(await deliver(callback, bookOnce)).toMatchObject({ outcome: 'processed', booked: 1 });
  });

  test('a second concurrent transaction of a handler is refused, so that its ROLLBACK cannot undo the first', async () => {
    const callback = transferSucceeded();
    const steps: Steps = async (tx, bookNow) => {
      await tx.query('BEGIN');
      await bookNow();
      await expect(tx.query('BEGIN')).rejects.toMatchObject({
        code: 'TRANSACTION_CONTROL',
        message: containing(
          "The handler's client refuses BEGIN: a transaction is open already. Run one after the other, or nest with SAVEPOINT.",
        ),
      });
      await tx.query('COMMIT');
    };
    expect(await deliver(callback, steps)).toMatchObject({ outcome: 'processed', booked: 1 });
  });

  test('SAVEPOINT and ROLLBACK TO keep what a failing statement would undo', async () => {
    const callback = transferSucceeded();
    const steps: Steps = async (tx, bookNow) => {
      await bookNow();
      await tx.query('SAVEPOINT mine');
      await tx.query('SELECT 1/0').catch(() => tx.query('ROLLBACK TO mine'));
    };
    expect(await deliver(callback, steps)).toMatchObject({ outcome: 'processed', booked: 1, recorded: 1 });
  });
});

test('a callback within a config object receives the rows, and the refusal of a COMMIT', async () => {
  const results: unknown[] = [];
  const ask = (tx: PoolClient, text: string): Promise<void> =>
    new Promise((resolve) => {
      const callback = (error: unknown, result: unknown): void => {
        results.push(error ?? (result as { rows: unknown[] }).rows);
        resolve();
      };
      (tx.query as (query: object) => unknown)({ text, callback });
    });
  const ended = await deliver(transferSucceeded(), async (tx, bookNow) => {
    await ask(tx, 'SELECT 1 AS one');
    await ask(tx, 'COMMIT');
    await bookNow();
  });
  expect(results).toEqual([[{ one: 1 }], expect.objectContaining({ code: 'TRANSACTION_CONTROL' })]);
  expect(ended).toMatchObject({ outcome: 'processed', booked: 1, recorded: 1 });
});

test('blocks and functions with BEGIN and END in them run, and so do query objects and callbacks', async () => {
  const callback = transferSucceeded();
  const steps: Steps = async (tx, bookNow) => {
    await tx.query('DO $$ BEGIN PERFORM 1; END $$');
    await tx.query(
      `CREATE OR REPLACE FUNCTION pg_temp.one() RETURNS int AS $$ BEGIN RETURN 1; END $$ LANGUAGE plpgsql`,
    );
    await new Promise((resolve) => tx.query(new Query('SELECT pg_temp.one()')).on('end', resolve));
    const rows = await new Promise((resolve, reject) => {
      tx.query('SELECT $1::int AS one', [1], (error, result) => {
        if (error instanceof Error) reject(error);
        else resolve(result.rows);
      });
    });
    expect(rows).toEqual([{ one: 1 }]);
    await new Promise((resolve) => {
      tx.query('BEGIN', resolve);
    });
    await bookNow();
    await tx.query('END');
  };
  expect(await deliver(callback, steps)).toEqual({ outcome: 'processed', booked: 1, recorded: 1 });
});

describe('the settings that a handler leaves behind do no harm', () => {
  const schema = `tenant_${randomUUID().slice(0, 8)}`;
  const role = `tenant_${randomUUID().slice(0, 8)}`;

  beforeAll(async () => {
    await pool.query(`CREATE SCHEMA ${schema}; CREATE SCHEMA ${schema}_2; CREATE ROLE ${role};
      CREATE TABLE ${schema}_2.transfer_callbacks (LIKE transfer_callbacks)`);
  });

  test.each([
    ['a search_path without the table', `SET LOCAL search_path = ${schema}`],
    ['a search_path with a table of the same name', `SET LOCAL search_path = ${schema}_2`],
    ['a role without rights', `SET LOCAL ROLE ${role}`],
    ['a read-only transaction', 'SET TRANSACTION READ ONLY'],
  ])('a record is committed although the handler leaves %s, quickly or slowly', async (_title, setting) => {
    for (const slow of [false, true]) {
      const callback = transferSucceeded();
      const steps: Steps = async (tx, bookNow) => {
        await bookNow();
        if (slow) await new Promise((resolve) => setTimeout(resolve, 1_100));
        await tx.query(setting);
      };
      expect(await deliver(callback, steps)).toEqual({ outcome: 'processed', booked: 1, recorded: 1 });
      expect(await deliver(callback, bookOnce)).toMatchObject({ outcome: 'duplicate', booked: 1 });
    }
  });

  test('the record of a slow handler counts from settling', async () => {
    const callback = transferSucceeded();
    let returnedAt = 0;
    await deliver(callback, async (tx, bookNow) => {
      await bookNow();
      await new Promise((resolve) => setTimeout(resolve, 1_100));
      const { rows } = await tx.query<{ now: Date }>('SELECT clock_timestamp() AS now');
      returnedAt = rows[0]?.now.getTime() ?? 0;
    });
    const { rows } = await pool.query<Record<'settled_at' | 'expires_at', Date>>(
      'SELECT settled_at, expires_at FROM transfer_callbacks WHERE id = $1',
      [callback.data.id],
    );
    const [{ settled_at: settledAt, expires_at: expiresAt }] = rows as [(typeof rows)[0]];
    expect(settledAt.getTime()).toBeGreaterThanOrEqual(returnedAt);
    expect(expiresAt.getTime() - settledAt.getTime()).toBe(604_800_000);
  });
});
