import { prismaStore } from 'transfer-callbacks';
import { afterEach, expect, test } from 'vitest';
import { successOf, transfersOr } from '../support/helpers/reversal-race.js';
import { forkApp } from '../support/programs/child.js';
import { raceProcesses } from '../support/programs/reversals.js';
import { databases, type Started } from './databases.js';
import type { LedgerOptions } from './ledger-app.js';
import { prisma7 } from './prisma.js';

let server: Started | undefined;
afterEach(() => server?.stop());

const count = transfersOr(100);

test.each([
  ['PostgreSQL 18', 'postgres', 'processes are killed', false],
  ['PostgreSQL 18', 'postgres', 'processes are killed and the records of successes end', true],
  ['MariaDB', 'mysql', 'processes are killed', false],
  ['MariaDB', 'mysql', 'processes are killed and the records of successes end', true],
] as const)(
  'on two processes with Prisma on %s (%s) each transfer is refunded once while %s',
  async (name, dialect, what, ends) => {
    const database = databases.find((each) => each.name === name) ?? expect.fail();
    const { url } = (server = await database.start());
    const { client, transaction = expect.fail(), close } = (await prisma7.open[dialect]?.(url, 4)) ?? expect.fail();
    const store = prismaStore(client as Parameters<typeof prismaStore>[0], { dialect });
    await store.migrate();
    const wrong = await raceProcesses({
      title: `Prisma on ${name}: ${what}`,
      count,
      fork: (port) => forkApp('../../sql/reversal-app.ts', { dialect, url, port } satisfies LedgerOptions),
      kills: true,
      disturb: ends ? (id) => store.forget(id, successOf(id)).catch(() => false) : undefined,
      countBookings: (status, id) => transaction.count(`${status} ${id}`),
      mayPayAgain: ends,
    });
    await close();
    expect(wrong).toEqual([]);
  },
  120_000 + 2_000 * count,
);
