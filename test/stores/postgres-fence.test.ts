import { randomUUID } from 'node:crypto';
import { Query, type Pool, type PoolClient } from 'pg';
import type { TransferCallback } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { translateControl } from '../../src/stores/postgres-control.js';
import { book, receiverOn, startLedger, type Ledger, type PostgresServer } from '../support/postgres.js';

let server: PostgresServer;
let pool: Pool;
let bookings: Ledger['bookings'];

beforeAll(async () => {
  ({ server, pool, bookings } = await startLedger({ max: 20 }));
});
afterAll(() => server.stop());

type Steps = (tx: PoolClient, bookNow: () => Promise<void>) => unknown;

/** Delivers a callback to a handler that runs `steps`, and tells how that ended and what was committed. */
async function deliver(callback: TransferCallback, steps: Steps) {
  const receiver = receiverOn(pool, {
    onSuccess: async (given, { tx }) => {
      await steps(tx, () => book(given, { tx }));
    },
  });
  const ended = await receiver.receive(callback);
  const { rowCount } = await pool.query('SELECT FROM transfer_callbacks WHERE id = $1', [callback.data.id]);
  return {
    outcome: ended.outcome,
    code: 'error' in ended ? (ended.error as { code?: unknown }).code : undefined,
    booked: (await bookings(callback.data.id)).length,
    recorded: rowCount,
  };
}

const ignore = (): void => undefined;
const bookOnce: Steps = (_tx, bookNow) => bookNow();

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

describe('a handler that ends the transaction behind the fence loses and doubles nothing', () => {
  test.each<[string, Steps, Awaited<ReturnType<typeof deliver>>, string]>([
    [
      'by ROLLBACK',
      async (tx, bookNow) => {
        await bookNow();
        await tx.query('SELECT 1; ROLLBACK');
      },
      { outcome: 'store_unavailable', code: 'TRANSACTION_CONTROL', booked: 0, recorded: 0 },
      'processed',
    ],
    [
      'by ROLLBACK and begins another',
      async (tx, bookNow) => {
        await tx.query('SELECT 1; ROLLBACK; BEGIN');
        await bookNow();
      },
      { outcome: 'store_unavailable', code: 'TRANSACTION_CONTROL', booked: 0, recorded: 0 },
      'processed',
    ],
    [
      'by ROLLBACK and then writes',
      async (tx, bookNow) => {
        await tx.query('SELECT 1; ROLLBACK');
        await bookNow();
      },
      { outcome: 'handler_failed', code: 'TRANSACTION_CONTROL', booked: 0, recorded: 0 },
      'processed',
    ],
    [
      'by COMMIT',
      async (tx, bookNow) => {
        await bookNow();
        await tx.query('SELECT 1; COMMIT');
      },
      { outcome: 'store_unavailable', code: 'TRANSACTION_CONTROL', booked: 1, recorded: 1 },
      'duplicate',
    ],
    [
      'by COMMIT and then throws',
      async (tx, bookNow) => {
        await bookNow();
        await tx.query('SELECT 1; COMMIT');
        throw new Error('after the commit');
      },
      { outcome: 'handler_failed', code: undefined, booked: 1, recorded: 1 },
      'duplicate',
    ],
    [
      "by releasing the store's savepoint",
      async (tx, bookNow) => {
        await bookNow();
        await tx.query('RELEASE transfer_callbacks');
      },
      { outcome: 'store_unavailable', code: 'TRANSACTION_CONTROL', booked: 0, recorded: 0 },
      'processed',
    ],
  ])('a handler that ends the transaction %s loses and doubles nothing', async (_title, steps, first, second) => {
    const callback = transferSucceeded();
    expect(await deliver(callback, steps)).toEqual(first);
    expect(await deliver(callback, bookOnce)).toMatchObject({ outcome: second, booked: 1, recorded: 1 });
  });
});

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
        message:
          "The handler's client refuses BEGIN: a transaction is open already. Run one after the other, or nest with SAVEPOINT.",
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

describe("a statement that would end the store's transaction is refused", () => {
  const refused = { code: 'TRANSACTION_CONTROL' };

  test.each<[string, (tx: PoolClient) => Promise<unknown>]>([
    ['a text', (tx) => tx.query('ROLLBACK')],
    ['a text with values', (tx) => tx.query('commit', [])],
    ['a config object', (tx) => tx.query({ text: 'COMMIT AND CHAIN', rowMode: 'array' })],
    [
      'a callback',
      (tx) =>
        new Promise((_resolve, reject) => {
          tx.query('/* by an ORM */ ROLLBACK;', reject);
        }),
    ],
    [
      'a query object',
      (tx) =>
        new Promise((_resolve, reject) => {
          tx.query(new Query('COMMIT')).on('error', reject);
        }),
    ],
    [
      'a query object that would begin',
      (tx) =>
        new Promise((_resolve, reject) => {
          const query = new Query('BEGIN');
          (tx.query as (query: Query, callback: (error: Error) => void) => unknown)(query, reject);
        }),
    ],
    ['end()', (tx) => (tx as unknown as { end(): Promise<void> }).end()],
    [
      'end() with a callback',
      (tx) =>
        new Promise((_resolve, reject) => {
          (tx as unknown as { end(callback: (error: Error) => void): void }).end(reject);
        }),
    ],
  ])(
    "a statement that would end the store's transaction is refused as %s, and changes nothing",
    async (_title, attempt) => {
      const callback = transferSucceeded();
      const steps: Steps = async (tx, bookNow) => {
        await bookNow();
        await expect(attempt(tx)).rejects.toMatchObject(refused);
      };
      expect(await deliver(callback, steps)).toEqual({ outcome: 'processed', booked: 1, recorded: 1 });
    },
  );

  test('the error of a refused ROLLBACK tells what to do instead', async () => {
    let message = '';
    await deliver(transferSucceeded(), (tx) =>
      tx.query('Rollback').catch((error: unknown) => {
        ({ message } = error as Error);
      }),
    );
    expect(message).toBe(
      "The handler's client refuses ROLLBACK: the store ends the transaction. Return to commit, throw to roll back, and use SAVEPOINT to undo a part.",
    );
  });
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

describe('the fence', () => {
  const [begin, commit, rollback] = [
    { sql: 'SAVEPOINT transfer_callbacks_handler', opens: true },
    { sql: 'RELEASE SAVEPOINT transfer_callbacks_handler', opens: false },
    { sql: 'ROLLBACK TO SAVEPOINT transfer_callbacks_handler', opens: false },
  ];

  test.each([
    'BEGIN',
    'begin;',
    'BEGIN WORK',
    'BEGIN TRANSACTION;',
    'start  transaction',
    '\n-- by the ORM\n  begin /* traced */;',
    '/* a */ /* b */ ; BEGIN -- c',
    'start transaction isolation level read committed read write',
    'BEGIN TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE;',
  ])('the fence begins a savepoint for %j', (text) => {
    expect(translateControl(text, false)).toEqual(begin);
  });

  test.each([
    'COMMIT',
    'commit;',
    'END',
    'COMMIT WORK',
    'end transaction;',
    'COMMIT AND NO CHAIN',
    "COMMIT /*app='x'*/",
  ])('the fence releases the savepoint for %j, and refuses it without one', (text) => {
    expect(translateControl(text, true)).toEqual(commit);
    expect(() => translateControl(text, false)).toThrow('the store ends the transaction');
  });

  test.each(['ROLLBACK', 'rollback;', 'ABORT', 'ROLLBACK WORK', 'abort transaction', 'ROLLBACK AND NO CHAIN'])(
    'the fence rolls back to the savepoint for %j, and refuses it without one',
    (text) => {
      expect(translateControl(text, true)).toEqual(rollback);
      expect(() => translateControl(text, false)).toThrow('the store ends the transaction');
    },
  );

  test.each([
    'COMMIT AND CHAIN',
    'ROLLBACK AND CHAIN',
    "PREPARE TRANSACTION 'x'",
    "COMMIT PREPARED 'x'",
    "ROLLBACK PREPARED 'x'",
    'BEGIN; INSERT INTO ledger VALUES (1); COMMIT',
    'COMMIT; SELECT 1',
    '--\nrollback; select 1',
  ])('the fence refuses %j with a savepoint and without', (text) => {
    for (const isOpen of [false, true]) {
      expect(() => translateControl(text, isOpen)).toThrow(expect.objectContaining({ code: 'TRANSACTION_CONTROL' }));
    }
  });

  test.each([
    ['BEGIN ISOLATION LEVEL SERIALIZABLE', 'isolation level serializable'],
    ['start transaction isolation level repeatable read', 'isolation level repeatable read'],
    ['BEGIN READ ONLY', 'read only'],
  ])('the fence refuses %j, because the transaction has begun with other modes', (text, modes) => {
    expect(() => translateControl(text, false)).toThrow(
      `the store has begun the transaction already, and not as ${modes}.`,
    );
  });

  test.each([
    'SELECT 1',
    '',
    undefined,
    'ROLLBACK TO mine',
    'rollback to savepoint mine',
    'ROLLBACK WORK TO SAVEPOINT mine',
    'SAVEPOINT begin',
    'RELEASE mine',
    'PREPARE statement AS SELECT 1',
    'DO $$ BEGIN PERFORM 1; END $$',
    'SELECT 1; COMMIT',
    'beginning',
    "SELECT 'commit'",
    '-- commit',
    '/* commit */ SELECT 1',
    'SET TRANSACTION READ ONLY',
  ])('the fence passes %j on unchanged', (text) => {
    expect(translateControl(text, false)).toBeUndefined();
  });

  test('the fence reads a long text without transaction control within a second', () => {
    // Processor time, which other programs on the machine do not add to.
    const before = process.cpuUsage();
    translateControl(`${' '.repeat(100_000)}/*${'*'.repeat(100_000)}`, false);
    translateControl(`${'/**/'.repeat(25_000)}SELECT`, false);
    translateControl(`${'--\n'.repeat(25_000)}SELECT`, false);
    const { user, system } = process.cpuUsage(before);
    expect((user + system) / 1_000).toBeLessThan(1_000);
  });
});

test('release() does nothing, not even by a handler that kept its client while the next delivery has it', async () => {
  const own = server.pool({ max: 1 });
  const kept: PoolClient[] = [];
  const receiver = receiverOn(own, {
    async onSuccess(given, { tx }) {
      await book(given, { tx });
      kept.push(tx);
      for (const client of kept) client.release();
      // The only client of the pool is still the store's.
      expect(own.idleCount).toBe(0);
      if (kept.length === 1) throw new Error('after release()');
    },
  });
  const callback = transferSucceeded();
  expect((await receiver.receive(callback)).outcome).toBe('handler_failed');
  expect(await bookings(callback.data.id)).toEqual([]);
  expect((await receiver.receive(callback)).outcome).toBe('processed');
  expect(await bookings(callback.data.id)).toEqual(['SUCCESS']);
  expect([own.totalCount, own.idleCount]).toEqual([1, 1]);
});

test('a client that is released twice does not turn a commit into a failure', async () => {
  const own = server.pool({ max: 1 });
  const receiver = receiverOn(own, {
    onSuccess: async (given, { tx }) => {
      await book(given, { tx });
      // Past the fence, as an APM or a plugin of the pool may do it.
      const { _clients: clients } = own as unknown as { _clients: PoolClient[] };
      clients[0]?.release(true);
    },
  });
  const callback = transferSucceeded();
  const { outcome } = await receiver.receive(callback);
  const booked = await bookings(callback.data.id);
  expect([outcome, booked]).toEqual(booked.length === 1 ? ['processed', ['SUCCESS']] : ['store_unavailable', []]);
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
