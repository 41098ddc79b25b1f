import { Client, Query, type PoolClient } from 'pg';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { book, receiverOn, startLedger, type Ledger, type PostgresServer } from '../support/postgres.js';
import { bookOnce, deliverOn, type Deliver, type Ended, type Steps } from './handler-steps.js';

let server: PostgresServer;
let bookings: Ledger['bookings'];
let deliver: Deliver;

beforeAll(async () => {
  const ledger = await startLedger({ max: 20 });
  ({ server, bookings } = ledger);
  deliver = deliverOn(ledger);
});
afterAll(() => server.stop());

/** Sends a text past the fence, with the method of `pg` itself. */
function queryBehind(tx: PoolClient, text: string): Promise<unknown> {
  const { query } = Client.prototype as unknown as { query: (text: string) => Promise<unknown> };
  return query.call(tx, text);
}

describe('a handler that ends the transaction unnoticed loses and doubles nothing', () => {
  test.each<[string, Steps, Ended, string]>([
    [
      'by ROLLBACK',
      async (tx, bookNow) => {
        await bookNow();
        await queryBehind(tx, 'ROLLBACK');
      },
      { outcome: 'store_unavailable', code: 'TRANSACTION_CONTROL', booked: 0, recorded: 0 },
      'processed',
    ],
    [
      'by ROLLBACK and begins another',
      async (tx, bookNow) => {
        await queryBehind(tx, 'ROLLBACK; BEGIN');
        await bookNow();
      },
      { outcome: 'store_unavailable', code: 'TRANSACTION_CONTROL', booked: 0, recorded: 0 },
      'processed',
    ],
    [
      'by ROLLBACK and then writes',
      async (tx, bookNow) => {
        await queryBehind(tx, 'ROLLBACK');
        await bookNow();
      },
      { outcome: 'handler_failed', code: 'TRANSACTION_CONTROL', booked: 0, recorded: 0 },
      'processed',
    ],
    [
      'by COMMIT',
      async (tx, bookNow) => {
        await bookNow();
        await queryBehind(tx, 'COMMIT');
      },
      { outcome: 'store_unavailable', code: 'TRANSACTION_CONTROL', booked: 1, recorded: 1 },
      'duplicate',
    ],
    [
      'by COMMIT and then throws',
      async (tx, bookNow) => {
        await bookNow();
        await queryBehind(tx, 'COMMIT');
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
    expect(message).toContain(
      "The handler's client refuses ROLLBACK: the store ends the transaction. Return to commit, throw to roll back, and use SAVEPOINT to undo a part.",
    );
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
