/** A merchant's app as a separate process, whose service takes successes back. See reversal-race.test.ts. */
import { prismaStore } from 'transfer-callbacks';
import { readAppOptions } from '../support/programs/app.js';
import { serveReversals } from '../support/programs/reversals.js';
import type { LedgerOptions } from './ledger-app.js';
import { prisma7 } from './prisma.js';

const { dialect, url, port } = readAppOptions() as LedgerOptions;
const opened = await prisma7.open[dialect]?.(url, 10);
if (opened?.transaction === undefined) throw new Error(`Prisma has no transaction on ${dialect}.`);
const { client, transaction } = opened;
await serveReversals({
  store: prismaStore(client as Parameters<typeof prismaStore>[0], { dialect }),
  write: (tx, booked) => transaction.write(tx, booked),
  port,
});
