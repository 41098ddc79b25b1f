// Reads the open payouts of your table page by page, for `pending` of `reconcileTransfers`. With your library:
//
// pg           openPayouts(async ({ at, id }) => (await pool.query(postgres, [at, id])).rows)
// Drizzle      the same, with `db.$client` for the pool
// postgres.js  openPayouts(({ at, id }) => sql.unsafe(postgres, [at, id]))
// Prisma       openPayouts(({ at, id }) => prisma.$queryRawUnsafe(postgres, at, id))
// mysql2       openPayouts(async ({ at, id }) => (await pool.execute(mysql, [at, at, id]))[0])
import type { PendingTransfer } from 'transfer-callbacks/client';

/** `at` is `created_at` as a string. A `Date` would lose its microseconds, and pages would begin at a row that was read. */
interface Payout extends PendingTransfer {
  id: string;
  at: string;
}

type Place = Pick<Payout, 'at' | 'id'>;

/** Before the first row. If your ids are numbers, write `id: '0'`. */
const start: Place = { at: '1970-01-01', id: '' };

/** Yields the open payouts, oldest first. To continue a run that ended early, `cursor` is the `report.cursor` of it. */
export async function* openPayouts(
  readPage: (last: Place) => PromiseLike<unknown>,
  cursor?: PendingTransfer,
): AsyncGenerator<Payout> {
  let last: Place | undefined = (cursor as Payout | undefined) ?? start;
  while (last !== undefined) {
    const page = (await readPage(last)) as Payout[];
    yield* page;
    last = page.at(-1);
  }
}

/** `$1::text` is needed: postgres.js makes a `Date` of a value for a time. Write `::timestamp` if your column is one. */
export const postgres = `
  SELECT id, (extract(epoch FROM created_at) * 1000)::float8 AS "createdAt", created_at::text AS at FROM payouts
  WHERE paid_at IS NULL AND failed_at IS NULL AND (created_at, id) > ($1::text::timestamptz, $2)
  ORDER BY created_at, id LIMIT 1000`;

/** The index of MySQL and MariaDB does not serve a comparison of rows, so the condition is written out. */
export const mysql = `
  SELECT id, created_at AS createdAt, CAST(created_at AS CHAR) AS at FROM payouts
  WHERE paid_at IS NULL AND failed_at IS NULL
    AND (created_at > CAST(? AS DATETIME(6)) OR (created_at = CAST(? AS DATETIME(6)) AND id > ?))
  ORDER BY created_at, id LIMIT 1000`;
