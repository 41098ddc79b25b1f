// Plugins, transformers and mappers of the app, which change what its queries return.
import createKnex from 'knex';
import { CamelCasePlugin, ParseJSONResultsPlugin, type Kysely } from 'kysely';
import { Pool } from 'pg';
import postgres from 'postgres';
import { Sequelize } from 'sequelize';
import { knexStore, kyselyStore, pgStore, postgresJsStore, sequelizeStore, type SqlStore } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { expect, onTestFinished, test } from 'vitest';
import { receiverOf } from '../core/support.js';
import { containing } from '../support/helpers/containing.js';
import { databases, type Dialect } from './databases.js';
import { describeDatabases } from './describe-databases.js';
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
