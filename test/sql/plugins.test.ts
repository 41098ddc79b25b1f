// Plugins, transformers and mappers of the app, which change what its queries return.
import { fileURLToPath } from 'node:url';
import createKnex, { type Knex } from 'knex';
import { CamelCasePlugin, Kysely, MysqlDialect, ParseJSONResultsPlugin, PostgresDialect, SqliteDialect } from 'kysely';
import { createPool } from 'mysql2';
import { Pool } from 'pg';
import postgres from 'postgres';
import { Sequelize } from 'sequelize';
import {
  knexStore,
  kyselyStore,
  pgStore,
  postgresJsStore,
  sequelizeStore,
  transferCallbackReceiver,
  type SqlStore,
} from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { expect, test } from 'vitest';
import { containing } from '../support/helpers/containing.js';
import { databases, openFile, type Dialect } from './databases.js';
import { describeDatabases } from './describe-databases.js';

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

function openKysely(dialect: Dialect, url: string, plugin: object): Made {
  const make = {
    postgres: () => new PostgresDialect({ pool: new Pool({ connectionString: url }) }),
    mysql: () => new MysqlDialect({ pool: createPool({ uri: url }) }),
    sqlite: () => new SqliteDialect({ database: openFile(url) }),
  };
  const db = new Kysely<object>({ dialect: make[dialect](), plugins: [plugin as CamelCasePlugin] });
  return [kyselyStore(db, { dialect }), () => db.destroy()];
}

function openKnex(dialect: Dialect, url: string, postProcessResponse: (result: unknown) => unknown): Made {
  const configs: Record<Dialect, Knex.Config> = {
    postgres: { client: 'pg', connection: url },
    mysql: { client: 'mysql2', connection: url },
    sqlite: {
      client: 'better-sqlite3',
      connection: dialect === 'sqlite' ? fileURLToPath(url) : '',
      useNullAsDefault: true,
    },
  };
  const knex = createKnex({ ...configs[dialect], pool: { min: 0, max: 2 }, postProcessResponse });
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

/** What becomes of a callback and its copy, and what is read of it. */
async function deliver([store]: Made) {
  await store.migrate();
  const receiver = transferCallbackReceiver({
    ...{ store, onSuccess: () => undefined, onFailed: () => undefined, logger: false },
  });
  const callback = transferSucceeded();
  const outcomes = [await receiver.receive(callback), await receiver.receive(callback)].map(({ outcome }) => outcome);
  const { state } = await receiver.inspect(callback.data.id);
  return { outcomes, state, checked: await receiver.check() };
}

const works = { outcomes: ['processed', 'duplicate'], state: 'handled', checked: { ok: true } };

const tried = databases.filter(({ name }) => ['PostgreSQL 18', 'MariaDB', 'SQLite'].includes(name));
describeDatabases(tried, ({ name, dialect }, server) => {
  const ways: readonly (readonly [what: string, open: () => Made])[] = [
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
    const made = open();
    expect(await deliver(made)).toMatchObject(works);
    await made[1]();
  });

  const refused: readonly (readonly [named: string, open: () => Made])[] = [
    ...(name === 'MariaDB'
      ? [['`postProcessResponse` of Knex', () => openKnex(dialect, server.url, ofTheDocs)] as const]
      : []),
    ...(dialect === 'postgres'
      ? [['`transform` of postgres.js', () => openPostgresJs(server.url, { value: { from: parseJson } })] as const]
      : []),
  ];
  test.runIf(refused.length > 0).each(refused)('check names %s', async (named, open) => {
    const made = open();
    await made[0].migrate();
    const handlers = { onSuccess: () => undefined, onFailed: () => undefined };
    const receiver = transferCallbackReceiver({ store: made[0], ...handlers, logger: false });
    expect(await receiver.check()).toMatchObject({
      ok: false,
      error: { code: 'STORE_REPLY_UNEXPECTED', message: containing(`got others: ${named} changes them`) },
    });
    await made[1]();
  });
});
