import { PrismaLibSql } from '@prisma/adapter-libsql';
import { PrismaMariaDb } from '@prisma/adapter-mariadb';
import { PrismaPg } from '@prisma/adapter-pg';
import { PrismaClient as PrismaMysql } from 'prisma-mysql';
import { PrismaClient as PrismaPostgres, type Prisma } from 'prisma-postgresql';
import { PrismaClient as PrismaSqlite } from 'prisma-sqlite';
import { toTransaction, type Library, type Opened } from './opened.js';
import * as six from './prisma6/clients.js';

export const prisma7: Library = {
  name: 'Prisma 7',
  open: {
    postgres: (url, max) =>
      withNested(openPrisma(new PrismaPostgres({ adapter: new PrismaPg({ connectionString: url, max }) }))),
    mysql: (url, max) => withNested(openPrisma(new PrismaMysql({ adapter: new PrismaMariaDb(toSettings(url, max)) }))),
    sqlite(url) {
      const client = new PrismaSqlite({ adapter: new PrismaLibSql({ url }) });
      return { client, close: () => client.$disconnect() };
    },
  },
};

export const prisma6: Library = {
  name: 'Prisma 6',
  open: {
    postgres: (url, max) =>
      openPrisma(new six.PrismaPostgres({ adapter: new six.PrismaPg({ connectionString: url, max }) })),
    mysql: (url, max) => openPrisma(new six.PrismaMysql({ adapter: new six.PrismaMariaDb(toSettings(url, max)) })),
  },
};

/** The clients differ by their types, and not in what is used here. */
function openPrisma(
  client: PrismaPostgres | PrismaMysql | six.PrismaPostgres | six.PrismaMysql,
): Opened<typeof client, Prisma.TransactionClient> {
  const prisma = client as PrismaPostgres;
  return {
    client,
    transaction: toTransaction<Prisma.TransactionClient>({
      insert: (tx, table, name) =>
        table === 'written' ? tx.written.create({ data: { name } }) : tx.locked.create({ data: { name } }),
      read: (name) => prisma.written.findMany({ where: { name } }),
      send: (tx, sql) => tx.$executeRawUnsafe(sql),
    }),
    // A look, and an insert of a name that is too long.
    leave: (tx: Prisma.TransactionClient) =>
      tx.locked.upsert({ where: { name: 'a' }, update: { name: 'b' }, create: { name: 'c'.repeat(300) } }),
    close: () => prisma.$disconnect(),
  };
}

/** Prisma 6 nests no transactions. */
function withNested(opened: ReturnType<typeof openPrisma>): typeof opened {
  return {
    ...opened,
    nest: (tx: Prisma.TransactionClient, work) => tx.$transaction((inner) => work(inner as never)),
  };
}

function toSettings(url: string, max: number) {
  const { hostname, port, username, pathname } = new URL(url);
  return {
    host: hostname,
    port: Number(port),
    user: username,
    database: pathname.slice(1),
    connectionLimit: max,
    // A password of MySQL's default kind is sent without TLS only if the client asks for the server's key.
    allowPublicKeyRetrieval: true,
  };
}
