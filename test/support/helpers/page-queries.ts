import { expect } from 'vitest';
import { reconcileTransfers, type PendingTransfer } from 'transfer-callbacks/client';
import { openPayouts } from '../../../examples/open-payouts.js';
import { serviceOf } from '../../client/support.js';
import { receiverOf } from '../../core/support.js';
import { findPage } from '../../docs/pages.js';

type ReadPage = Parameters<typeof openPayouts>[0];

/** The index that the page advises, which MySQL makes without its condition. */
export const createIndex =
  /CREATE INDEX payouts_open [^`]*/.exec(findPage('docs/reconciliation.md').text)?.[0] ?? expect.fail('no index');

/** When the payouts of PostgreSQL were created, in milliseconds. */
export const createdMs = Date.parse('2026-01-15T10:30:00.123Z');

/** Payouts of which 25 were inserted in one transaction, at one microsecond. */
export const tables = {
  postgres: `CREATE TABLE payouts (id text PRIMARY KEY, created_at timestamptz NOT NULL, paid_at timestamptz, failed_at timestamptz);
    INSERT INTO payouts (id, created_at) SELECT 'p' || lpad(n::text, 2, '0'), '2026-01-15 10:30:00.123456+00' FROM generate_series(1, 25) n`,
  mysql: `CREATE TABLE payouts (id varchar(20) PRIMARY KEY, created_at datetime(6) NOT NULL, paid_at datetime(6), failed_at datetime(6));
    INSERT INTO payouts (id, created_at) VALUES ${Array.from({ length: 25 }, (_, n) => `('p${10 + n}', '2026-01-15 10:30:00.123456')`).join()}`,
};

/** Returns a query of the example with pages of 10. */
export const inTens = (query: string): string => query.replace('LIMIT 1000', 'LIMIT 10');

/**
 * Reads the 25 payouts by runs: all at once, and a part of them and then the others. Resolves with the times at which
 * they were created.
 */
export async function expectPages(readPage: ReadPage): Promise<Set<number>> {
  const read: string[] = [];
  const client = serviceOf({
    getTransaction(id: string) {
      read.push(id);
      return Promise.resolve({ id, externalId: id, status: 'PENDING' });
    },
  });
  const options = { receiver: receiverOf({ service: client }), concurrency: 1 };
  const created = new Set<number>();
  async function* noted(): AsyncGenerator<PendingTransfer> {
    for await (const payout of openPayouts(readPage)) {
      created.add(Math.trunc(Number(payout.createdAt)));
      yield payout;
    }
  }
  const all = await reconcileTransfers({ ...options, pending: noted() });
  expect(all).toMatchObject({ pending: 25, queries: 25, stopped: undefined });
  expect(new Set(read).size).toBe(25);
  const { cursor } = await reconcileTransfers({ ...options, pending: openPayouts(readPage), limit: 12 });
  const rest = await reconcileTransfers({ ...options, pending: openPayouts(readPage, cursor) });
  expect(rest).toMatchObject({ pending: 13, queries: 13, stopped: undefined });
  return created;
}
