import type { Pool, PoolClient } from 'pg';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { majors, receiverOn, startLedger, type Ledger, type PostgresServer } from '../support/postgres.js';

type Write = (entry: string) => string;

describe.each(majors)('on PostgreSQL %i', (major) => {
  let server: PostgresServer;
  let pool: Pool;
  let bookings: Ledger['bookings'];

  beforeAll(async () => {
    ({ server, pool, bookings } = await startLedger({ major, max: 20 }));
  });
  afterAll(() => server.stop());

  /** Delivers a callback once for each of three attempts. Returns how they ended, and what was committed. */
  async function deliver(on: Pool, handle: (tx: PoolClient, write: Write) => unknown): Promise<unknown> {
    const callback = transferSucceeded();
    const write: Write = (entry) => `INSERT INTO ledger VALUES ('${callback.data.id}', '${entry}')`;
    const receiver = receiverOn(on, {
      onSuccess: async (_callback, { tx }) => {
        await handle(tx, write);
      },
    });
    const ended: unknown[] = [];
    for (let attempt = 0; attempt < 3; attempt += 1) {
      const outcome = await receiver.receive(callback);
      ended.push(outcome.outcome, 'error' in outcome ? (outcome.error as { code?: unknown }).code : undefined);
    }
    const { rowCount } = await pool.query('SELECT FROM transfer_callbacks WHERE id = $1', [callback.data.id]);
    return { ended: [...new Set(ended)], booked: await bookings(callback.data.id), recorded: rowCount };
  }

  const refused = { ended: ['handler_failed', 'TRANSACTION_CONTROL'], booked: [], recorded: 0 };

  test.each<[string, (tx: PoolClient, write: Write) => unknown]>([
    ['a ROLLBACK between two writes', (tx, write) => tx.query(`${write('a')}; rollback; ${write('b')}`)],
    ['a COMMIT between two writes', (tx, write) => tx.query(`${write('a')}; commit; ${write('b')}`)],
    [
      'a ROLLBACK behind a nested comment, and a concurrent write',
      (tx, write) => Promise.all([tx.query('/* /* x */ */ ROLLBACK'), tx.query(write('b'))]),
    ],
    [
      'a ROLLBACK as second statement, and a concurrent write',
      (tx, write) => Promise.all([tx.query('SELECT 1; ROLLBACK'), tx.query(write('b'))]),
    ],
    ['PREPARE TRANSACTION', (tx, write) => tx.query(`${write('a')}; PREPARE TRANSACTION 'x'`)],
    ['a COMMIT behind a dollar quote', (tx, write) => tx.query(`SELECT $a$ ; $a$; ${write('a')}; /* ; */ COMMIT`)],
  ])('a text of several statements with %s is refused, and nothing is kept', async (_title, handle) => {
    expect(await deliver(pool, handle)).toEqual(refused);
  });

  test('a text that ends the transaction only with standard_conforming_strings off is refused', async () => {
    const own = server.pool({ max: 1, options: '-c standard_conforming_strings=off' });
    const handle = (tx: PoolClient, write: Write): unknown =>
      tx.query(String.raw`SELECT '\''; ${write('a').replaceAll("'", () => '$$')}; COMMIT; SELECT ''`);
    expect(await deliver(own, handle)).toEqual(refused);
  });

  test('a text of several statements is committed with the record, also with keywords in texts and comments', async () => {
    const handle = (tx: PoolClient, write: Write): unknown =>
      tx.query(
        `${write('a')}; /* /* x */ commit later */ ${write('; commit')}; DO $$ BEGIN PERFORM 1; END $$; -- ; end`,
      );
    expect(await deliver(pool, handle)).toEqual({
      ended: ['processed', undefined, 'duplicate'],
      booked: ['a', '; commit'],
      recorded: 1,
    });
  });

  test('a COMMIT within a DO block is refused by Postgres, and nothing is kept', async () => {
    const handle = (tx: PoolClient, write: Write): unknown => tx.query(`DO $$ BEGIN ${write('a')}; COMMIT; END $$`);
    expect(await deliver(pool, handle)).toEqual({ ended: ['handler_failed', '2D000'], booked: [], recorded: 0 });
  });
});
