import { fileURLToPath } from 'node:url';
import { PrismaPg } from '@prisma/adapter-pg';
import { prismaStore, transferCallbackReceiver, type HandlerContext, type TransferCallback } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { PrismaClient, type Prisma } from './generated/client.js';

/**
 * Books a callback in the transaction of its claim. This row and the callback's record are committed together. Without
 * `await` the row would never be written: Prisma sends a query when its promise is awaited.
 */
export async function book(
  { data }: TransferCallback,
  { tx }: HandlerContext<Prisma.TransactionClient>,
): Promise<void> {
  const { id, externalId, status, amount } = data;
  await tx.payout.create({ data: { callbackId: id, externalId, status, amount } });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const connectionString = process.env.DATABASE_URL ?? 'postgres://localhost/postgres';
  const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString, max: 20 }) });
  const store = prismaStore(prisma, { dialect: 'postgres' });
  await store.migrate(); // Or Prisma's migrations: the table is in schema.prisma.
  await prisma.$executeRaw`CREATE TABLE IF NOT EXISTS payouts (id serial PRIMARY KEY, callback_id text NOT NULL,
    external_id text NOT NULL, status text NOT NULL, amount numeric NOT NULL)`;

  const receiver = transferCallbackReceiver({ store, onSuccess: book, onFailed: book });
  const callback = transferSucceeded();
  for (const delivery of ['first', 'second']) {
    console.log(`The ${delivery} delivery: ${(await receiver.receive(callback)).outcome}`);
  }
  console.log(await prisma.payout.findMany({ where: { callbackId: callback.data.id } }));
  await prisma.$disconnect();
}
