import type { Pool } from 'pg';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { book, receiverOn, startLedger, type Ledger, type PostgresServer } from '../support/postgres.js';

type AnyQuery = (...args: unknown[]) => Promise<unknown>;

/** A client whose methods may be assigned. */
interface Wrapped {
  query: AnyQuery;
  end: AnyQuery;
  release: () => unknown;
}

let server: PostgresServer;
let bookings: Ledger['bookings'];

beforeAll(async () => {
  ({ server, bookings } = await startLedger({ max: 20 }));
});
afterAll(() => server.stop());

/** The query of the pool's client between two deliveries, and whether it is the client's own property. */
async function readQuery(pool: Pool): Promise<unknown[]> {
  const client = await pool.connect();
  const found = [(client as unknown as Wrapped).query, Object.hasOwn(client, 'query')];
  client.release();
  return found;
}

function log(tx: Wrapped, texts: unknown[]): void {
  const { query } = tx;
  tx.query = (...args) => {
    texts.push(args[0]);
    return query.apply(tx as never, args);
  };
}

test.each<[string, (tx: Wrapped, texts: unknown[]) => void, number]>([
  ['assigns a wrapper', log, 1],
  [
    'assigns a wrapper twice',
    (tx, texts) => {
      log(tx, texts);
      log(tx, texts);
    },
    2,
  ],
  [
    'defines a wrapper',
    (tx, texts) => {
      const { query } = tx;
      const value: AnyQuery = (...args) => {
        texts.push(args[0]);
        return query(...args);
      };
      Object.defineProperty(tx, 'query', { value, writable: true, configurable: true });
      expect(tx.query).toBe(value);
      expect(Object.getOwnPropertyDescriptor(tx, 'query')).toMatchObject({ value });
    },
    1,
  ],
  [
    'spies on it',
    (tx, texts) => {
      const { query } = tx;
      vi.spyOn(tx, 'query').mockImplementation((...args) => {
        texts.push(args[0]);
        return query(...args);
      });
    },
    1,
  ],
  [
    'assigns a wrapper and deletes it',
    (tx, texts) => {
      const { query } = tx;
      log(tx, texts);
      expect(delete (tx as Partial<Wrapped>).query).toBe(true);
      expect(tx.query).toBe(query);
    },
    0,
  ],
])(
  'a handler that %s for the query of its client works, and the pooled client stays clean',
  async (_title, wrap, each) => {
    const pool = server.pool({ max: 1 });
    const before = await readQuery(pool);
    for (let delivery = 0; delivery < 3; delivery += 1) {
      const texts: unknown[] = [];
      const callback = transferSucceeded();
      const receiver = receiverOn(pool, {
        async onSuccess(given, { tx }) {
          wrap(tx, texts);
          await tx.query('BEGIN');
          await book(given, { tx });
          await tx.query('COMMIT');
          await expect(tx.query('COMMIT')).rejects.toMatchObject({ code: 'TRANSACTION_CONTROL' });
        },
      });
      expect((await receiver.receive(callback)).outcome).toBe('processed');
      expect(await bookings(callback.data.id)).toEqual(['SUCCESS']);
      // What the handler sent, and nothing of the store's own.
      expect(texts).toHaveLength(4 * each);
      expect(await readQuery(pool)).toEqual(before);
    }
    expect(pool.totalCount).toBe(1);
  },
);

test('what a handler assigns to end and release of its client is read back, and the pooled client stays clean', async () => {
  const pool = server.pool({ max: 1 });
  const seen: unknown[] = [];
  const receiver = receiverOn(pool, {
    onSuccess(_callback, { tx }) {
      const wrapped = tx as unknown as Wrapped;
      wrapped.end = () => Promise.resolve('ended');
      wrapped.release = () => seen.push('released');
      wrapped.release();
      return wrapped.end().then((result) => seen.push(result, 'end' in tx, Object.keys(tx).includes('end')));
    },
  });
  expect((await receiver.receive(transferSucceeded())).outcome).toBe('processed');
  expect(seen).toEqual(['released', 'ended', true, false]);
  expect([pool.totalCount, pool.idleCount]).toEqual([1, 1]);
});

test('all else that a handler sets on its client is set on the client itself, as its listeners are', async () => {
  const pool = server.pool({ max: 1 });
  const notices: unknown[] = [];
  const receiver = receiverOn(pool, {
    async onSuccess(_callback, { tx }) {
      tx.once('notice', ({ message }) => notices.push(message));
      Object.assign(tx, { tenant: 'a' });
      await tx.query("DO $$ BEGIN RAISE NOTICE 'heard'; END $$");
    },
  });
  expect((await receiver.receive(transferSucceeded())).outcome).toBe('processed');
  expect(notices).toEqual(['heard']);
  const client = await pool.connect();
  expect(client).toMatchObject({ tenant: 'a' });
  expect(delete (client as { tenant?: string }).tenant).toBe(true);
  client.release();
});
