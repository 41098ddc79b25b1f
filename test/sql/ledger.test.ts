import { prismaStore } from 'transfer-callbacks';
import { expect, onTestFinished, test } from 'vitest';
import { forkApp } from '../support/programs/child.js';
import { keepLedger } from '../support/programs/ledger.js';
import type { AppOptions } from './app.js';
import { databases } from './databases.js';
import { prisma7 } from './prisma.js';

test.each([
  ['PostgreSQL 18', 'postgres', 300],
  ['MariaDB', 'mysql', 400],
] as const)(
  'through Prisma on %s the ledger has exactly one row for each transfer and each event of onOther, whatever their handlers do wrong',
  async (name, dialect, count) => {
    const database = databases.find((each) => each.name === name) ?? expect.fail();
    const { url, stop, kill, restart } = await database.start();
    onTestFinished(stop);
    const { client, transaction = expect.fail(), close } = (await prisma7.open[dialect]?.(url, 4)) ?? expect.fail();
    const store = prismaStore(client as Parameters<typeof prismaStore>[0], { dialect });
    await store.migrate();
    await keepLedger({
      count,
      fork: (port) =>
        forkApp('../../sql/app.ts', { reverses: false, library: 'Prisma 7', dialect, url, port } satisfies AppOptions),
      async restart() {
        await kill?.();
        await restart?.();
      },
      store,
      transaction,
    });
    await close();
  },
  // Beside the other files of the folder two cores take over two minutes.
  400_000,
);
