// Code that takes no `tx` reads the transaction of its handler from the async context.
import { AsyncLocalStorage } from 'node:async_hooks';
import { PrismaPg } from '@prisma/adapter-pg';
import { prismaStore, transferCallbackReceiver, type HandlerContext, type TransferCallback } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { PrismaClient, type Prisma } from './generated/client.js';

const connectionString = process.env.DATABASE_URL ?? 'postgres://localhost/postgres';
const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString, max: 4 }) });
const transaction = new AsyncLocalStorage<Prisma.TransactionClient>();

/** The transaction of the handler that runs, and elsewhere the client. Old code says `db()` where it said `prisma`. */
const db = (): Prisma.TransactionClient => transaction.getStore() ?? prisma;

// Old code: with `prisma` in place of `db()` each call would wait for a second connection, and all four for each other.
async function bookPayout({ id, externalId, status, amount }: TransferCallback['data']): Promise<void> {
  await db().payout.create({ data: { callbackId: id, externalId, status, amount } });
}

function handle({ data }: TransferCallback, { tx }: HandlerContext<Prisma.TransactionClient>): Promise<void> {
  return transaction.run(tx, bookPayout, data);
}

const store = prismaStore(prisma, { dialect: 'postgres' });
await store.migrate();
await prisma.$executeRaw`CREATE TABLE IF NOT EXISTS payouts (id serial PRIMARY KEY, callback_id text NOT NULL,
  external_id text NOT NULL, status text NOT NULL, amount numeric NOT NULL)`;
const receiver = transferCallbackReceiver({ store, onSuccess: handle, onFailed: handle });

const callbacks = Array.from({ length: 20 }, () => transferSucceeded());
const outcomes = await Promise.all(callbacks.map((callback) => receiver.receive(callback)));
console.log(outcomes.filter(({ outcome }) => outcome === 'processed').length, 'of 20 processed, and booked:');
console.log(await prisma.payout.count({ where: { callbackId: { in: callbacks.map(({ data }) => data.id) } } }));
await prisma.$disconnect();
