// Plugins, transformers and mappers of the app, which change what its queries return.
import createKnex from 'knex';
import { CamelCasePlugin, ParseJSONResultsPlugin, type Kysely } from 'kysely';
import { Pool } from 'pg';
import postgres from 'postgres';
import { Sequelize } from 'sequelize';
import {
  knexStore,
  kyselyStore,
  pgStore,
  postgresJsStore,
  sequelizeStore,
  type SqlStore,
  prismaStore,
} from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { expect, onTestFinished, test, afterAll, beforeAll } from 'vitest';
import { PrismaPg } from '@prisma/adapter-pg';
import { PrismaClient, Prisma } from 'prisma-postgresql';
import { receiverOf } from '../core/support.js';
import { containing } from '../support/helpers/containing.js';
import { databases, type Dialect, type Started } from './databases.js';
import { describeDatabases } from './libraries.js';
import { knexConfigs, kysely } from './query-builders.js';

type Made = readonly [store: SqlStore<unknown>, close: () => unknown];
type Row = Readonly<Record<string, unknown>>;

/** As the pages of Knex show it: the keys of each row in camel case. */
const camelCase = (row: Row): Row =>
  Object.fromEntries(
    Object.entries(row).map(([key, value]) => [key.replaceAll(/_(\w)/g, (_, c: string) => c.toUpperCase()), value]),
  );
const ofTheDocs = (result: unknown): unknown =>
  Array.isArray(result) ? result.map((row) => camelCase(row as Row)) : camelCase(result as Row);
/** As Objection's mappers do it: of all rows, in any depth. */
const ofObjection = (result: unknown): unknown => {
  if (Array.isArray(result)) return result.map(ofObjection);
  return result?.constructor === Object ? camelCase(result as Row) : result;
};
const parseJson = (value: unknown): unknown => {
  try {
    return JSON.parse(String(value));
  } catch {
    return value;
  }
};

async function openKysely(dialect: Dialect, url: string, plugin: object): Promise<Made> {
  const { client, close } = (await kysely.open[dialect]?.(url, 2)) ?? expect.fail(dialect);
  return [kyselyStore((client as Kysely<object>).withPlugin(plugin as CamelCasePlugin), { dialect }), close];
}

function openKnex(dialect: Dialect, url: string, postProcessResponse: (result: unknown) => unknown): Made {
  const knex = createKnex({ ...knexConfigs[dialect](url, 2), postProcessResponse });
  return [knexStore(knex, { dialect }), () => knex.destroy()];
}

function openSequelize(dialect: Dialect, url: string): Made {
  const options = { plain: true, nest: true, raw: false };
  const sequelize = new Sequelize(url, { logging: false, define: { underscored: true }, query: options });
  return [sequelizeStore(sequelize, { dialect }), () => sequelize.close()];
}

function openPg(url: string): Made {
  const pool = new Pool({ connectionString: url, types: { getTypeParser: () => parseJson } });
  return [pgStore(pool), () => pool.end()];
}

function openPostgresJs(url: string, transform: object): Made {
  const sql = postgres(url, { transform, onnotice: () => undefined });
  return [postgresJsStore(sql), () => sql.end()];
}

const tried = databases.filter(({ name }) => ['PostgreSQL 18', 'MariaDB', 'SQLite'].includes(name));
describeDatabases(tried, ({ name, dialect }, server) => {
  const ways: readonly (readonly [what: string, open: () => Made | Promise<Made>])[] = [
    ['the plugin of Kysely that parses JSON', () => openKysely(dialect, server.url, new ParseJSONResultsPlugin())],
    ['the plugin of Kysely for camel case', () => openKysely(dialect, server.url, new CamelCasePlugin())],
    ['mappers of Objection', () => openKnex(dialect, server.url, ofObjection)],
    ...(dialect === 'sqlite'
      ? []
      : [['options that Sequelize has for all queries', () => openSequelize(dialect, server.url)] as const]),
    ...(dialect === 'postgres'
      ? ([
          ['parsers of pg', () => openPg(server.url)],
          ['the transform of postgres.js for camel case', () => openPostgresJs(server.url, postgres.camel)],
        ] as const)
      : []),
    ...(dialect === 'mysql'
      ? []
      : [['the `postProcessResponse` of the pages of Knex', () => openKnex(dialect, server.url, ofTheDocs)] as const]),
  ];
  test.each(ways)('a copy is a duplicate behind %s', async (_what, open) => {
    const [store, close] = await open();
    onTestFinished(async () => {
      await close();
    });
    await store.migrate();
    const receiver = receiverOf({ store });
    const callback = transferSucceeded();
    for (const outcome of ['processed', 'duplicate']) expect((await receiver.receive(callback)).outcome).toBe(outcome);
    expect(await receiver.inspect(callback.data.id)).toMatchObject({ state: 'handled' });
    expect(await receiver.check()).toMatchObject({ ok: true });
  });

  const refused: readonly (readonly [named: string, open: () => Made | Promise<Made>])[] = [
    ...(name === 'MariaDB'
      ? [['`postProcessResponse` of Knex', () => openKnex(dialect, server.url, ofTheDocs)] as const]
      : []),
    ...(dialect === 'postgres'
      ? [['`transform` of postgres.js', () => openPostgresJs(server.url, { value: { from: parseJson } })] as const]
      : []),
  ];
  test.runIf(refused.length > 0).each(refused)('check names %s', async (named, open) => {
    const [store, close] = await open();
    onTestFinished(async () => {
      await close();
    });
    await store.migrate();
    const receiver = receiverOf({ store });
    expect(await receiver.check()).toMatchObject({
      ok: false,
      error: { code: 'STORE_REPLY_UNEXPECTED', message: containing(`got others: ${named} changes them`) },
    });
  });
});

// Clients of Prisma that an app has extended before it gives them to the store.

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
