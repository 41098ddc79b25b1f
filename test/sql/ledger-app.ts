/** A merchant's app as a separate process, whose handlers book each transfer through Prisma. See ledger.test.ts. */
import { prismaStore } from 'transfer-callbacks';
import { serveLedger } from '../support/programs/ledger-handlers.js';
import { prisma7 } from './prisma.js';
import { readAppOptions } from '../support/programs/app.js';

export interface LedgerOptions {
  readonly dialect: 'postgres' | 'mysql';
  readonly url: string;
  readonly port: number;
}

const { dialect, url, port } = readAppOptions() as LedgerOptions;
const opened = await prisma7.open[dialect]?.(url, 16);
if (opened?.transaction === undefined) throw new Error(`Prisma has no transaction on ${dialect}.`);
await serveLedger({
  store: prismaStore(opened.client as Parameters<typeof prismaStore>[0], { dialect }),
  transaction: opened.transaction,
  port,
});
