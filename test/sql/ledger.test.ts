import { prismaStore } from 'transfer-callbacks';
import { afterEach, expect, test } from 'vitest';
import { forkApp } from '../support/programs/child.js';
import { deliverAll } from '../support/programs/ledger.js';
import { databases, type Started } from './databases.js';
import type { LedgerOptions } from './ledger-app.js';
import { prisma7 } from './prisma.js';

let server: Started | undefined;
afterEach(() => server?.stop());

test.each([
  ['PostgreSQL 18', 'postgres', 300],
  ['MariaDB', 'mysql', 400],
] as const)(
  'through Prisma on %s the ledger has exactly one row for each callback, whatever their handlers do wrong',
  async (name, dialect, count) => {
    const database = databases.find((each) => each.name === name) ?? expect.fail();
    const { url, kill, restart } = (server = await database.start());
    const { client, transaction, close } = (await prisma7.open[dialect]?.(url, 4)) ?? expect.fail();
    const store = prismaStore(client as Parameters<typeof prismaStore>[0], { dialect });
    await store.migrate();
    const callbacks = await deliverAll({
      count,
      fork: (port) => forkApp('../../sql/ledger-app.ts', { dialect, url, port } satisfies LedgerOptions),
      async restart() {
        await kill?.();
        await restart?.();
      },
    });
    const wrong: unknown[] = [];
    for (const { data } of callbacks) {
      const found = { booked: await transaction?.count(data.id), state: (await store.read(data.id)).state };
      if (found.booked !== 1 || found.state !== 'settled') wrong.push(found);
    }
    expect(wrong).toEqual([]);
    await close();
  },
  // Beside the other files of the folder two cores take over two minutes.
  400_000,
);
