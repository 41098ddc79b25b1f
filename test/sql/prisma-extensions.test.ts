// Clients of Prisma that an app has extended before it gives them to the store.
import { PrismaPg } from '@prisma/adapter-pg';
import { PrismaClient, Prisma } from 'prisma-postgresql';
import { prismaStore } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { receiverOf } from '../core/support.js';
import { containing } from '../support/helpers/containing.js';
import { databases, type Started } from './databases.js';

let server: Started;
let prisma: PrismaClient;
/** Refuses writes. */
let replica: PrismaClient;

beforeAll(async () => {
  server = (await databases.find(({ name }) => name === 'PostgreSQL 18')?.start()) ?? expect.fail('no database');
  prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: server.url, max: 4 }) });
  const readOnly = `${server.url}?options=-c%20default_transaction_read_only%3Don`;
  replica = new PrismaClient({ adapter: new PrismaPg({ connectionString: readOnly }) });
  await prismaStore(prisma, { dialect: 'postgres' }).migrate();
});
afterAll(async () => {
  await prisma.$disconnect();
  await replica.$disconnect();
  await server.stop();
});

type Client = typeof prisma;
type Args = Parameters<Client['$transaction']>;

async function retry<T>(run: () => Promise<T>): Promise<T> {
  for (let tried = 0; ; tried += 1) {
    try {
      return await run();
    } catch (error) {
      if (tried === 3 || (error as { code?: unknown }).code !== 'P2034') throw error;
    }
  }
}

/** As Prisma's own example of an extension that retries transactions. */
const retryTransactions = Prisma.defineExtension((client) =>
  client.$extends({
    client: { $transaction: (...args: Args) => retry(async () => (client as Client).$transaction(...args)) },
  }),
);

/** The same, through the client that was extended. */
const retryInParent = Prisma.defineExtension({
  client: {
    $transaction(...args: Args): Promise<unknown> {
      const { $parent } = Prisma.getExtensionContext(this) as unknown as { $parent: Client };
      return retry(async () => $parent.$transaction(...args));
    },
  },
});

/** Changes the text of each raw query. */
const rewrite = (change: (sql: string) => string) =>
  Prisma.defineExtension({
    query: {
      $queryRawUnsafe: ({ args, query }) =>
        query(args.map((arg: unknown) => (typeof arg === 'string' ? change(arg) : arg)) as typeof args),
    },
  });

/** As an extension that comments queries with their trace. */
const comment = rewrite((sql) => `/* trace */ ${sql} /* of the app */`);

interface Operation {
  readonly model?: string;
  readonly operation: string;
  readonly args: unknown;
  readonly query: (args: unknown) => Promise<unknown>;
  /** Prisma's own extension for replicas uses it, too. */
  readonly __internalParams: { readonly transaction?: unknown };
}

/** Sends what only reads to a replica, outside of transactions. */
const readReplica = Prisma.defineExtension((client) =>
  client.$extends({
    query: {
      $allOperations: (({ model, operation, args, query, __internalParams }: Operation) => {
        if (!/^(?:find|count)/.test(operation) || __internalParams.transaction !== undefined) return query(args);
        const models = replica as unknown as Record<string, Record<string, (args: unknown) => Promise<unknown>>>;
        return models[model ?? '']?.[operation]?.(args);
      }) as never,
    },
  }),
);

/** What becomes of a callback whose handler writes through `tx`, and of its copy, and what `check` finds. */
async function deliver(client: unknown) {
  const receiver = receiverOf({
    store: prismaStore(client as Client, { dialect: 'postgres' }),
    async onSuccess({ data }, { tx }) {
      await tx.written.create({ data: { name: data.id } });
      // Nobody awaits this, and it fails in its second step.
      void tx.locked
        .upsert({ where: { name: 'a' }, update: { name: 'b' }, create: { name: 'c'.repeat(300) } })
        .catch(() => undefined);
    },
  });
  const callback = transferSucceeded();
  const delivered = [await receiver.receive(callback), await receiver.receive(callback)];
  return {
    outcomes: delivered.map(({ outcome }) => outcome),
    errors: delivered.map((each) => (each as { error?: Error }).error),
    written: await prisma.written.count({ where: { name: callback.data.id } }),
    checked: await receiver.check(),
  };
}

test.each<[string, () => unknown]>([
  ['retries transactions', () => prisma.$extends(retryTransactions)],
  ['retries transactions of the client that it extends', () => prisma.$extends(retryInParent)],
  ['retries transactions, above one for queries', () => prisma.$extends(comment).$extends(retryTransactions)],
  ['retries transactions, below one for queries', () => prisma.$extends(retryTransactions).$extends(comment)],
  ['rewrites queries', () => prisma.$extends(rewrite((sql) => sql.replaceAll(/\s+/g, ' ')))],
])('nothing is acknowledged or written through an extension that %s, and check says so', async (_how, extend) => {
  const error = {
    code: 'STORE_REPLY_UNEXPECTED',
    message: containing('An extension of the Prisma client replaces `$transaction`, or rewrites raw queries.'),
  };
  const { outcomes, errors, written, checked } = await deliver(extend());
  expect(errors).toMatchObject([error, error]);
  expect([outcomes, written]).toEqual([['store_unavailable', 'store_unavailable'], 0]);
  expect(checked).toMatchObject({ ok: false, error });
});

test.each<[string, () => unknown]>([
  ['comments queries', () => prisma.$extends(comment)],
  ['reads from a replica', () => prisma.$extends(readReplica)],
])('a callback is handled with its writes, or not at all, through an extension that %s', async (_how, extend) => {
  for (let round = 0; round < 20; round += 1) {
    const { outcomes, written, checked } = await deliver(extend());
    // The failing operation may be sent before the handler ends, or be refused.
    expect([outcomes[0], written]).toEqual(written === 1 ? ['processed', 1] : ['store_unavailable', 0]);
    expect(checked).toMatchObject({ ok: true });
  }
});

test('check names an extension that changes the rows of queries', async () => {
  const parse = Prisma.defineExtension({
    query: {
      async $queryRawUnsafe({ args, query }): Promise<unknown> {
        const rows = (await query(args)) as readonly Record<string, unknown>[];
        return rows.map((row) => ({ ...row, fingerprint: [row.fingerprint] }));
      },
    },
  });
  const { checked } = await deliver(prisma.$extends(parse));
  expect(checked).toMatchObject({
    ok: false,
    error: { code: 'STORE_REPLY_UNEXPECTED', message: containing('an extension of the Prisma client changes them') },
  });
});
