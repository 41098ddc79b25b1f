// The `query_timeout` of pg gives up a BEGIN whose reply is late. Some libraries then give the connection back with the
// transaction open, or not at all.
import { drizzle } from 'drizzle-orm/node-postgres';
import createKnex from 'knex';
import { Pool } from 'pg';
import { drizzleStore, knexStore, pgStore, typeormStore, type SqlStore } from 'transfer-callbacks';
import { DataSource } from 'typeorm';
import { expect, test } from 'vitest';
import { request } from '../stores/support.js';
import { containing } from '../support/helpers/containing.js';
import { startPostgresForFile } from '../support/servers/postgres-for-file.js';

const server = startPostgresForFile((started) => pgStore(started.pool()).migrate());

interface Made {
  readonly store: SqlStore<unknown>;
  readonly close: () => unknown;
}

const dialect = 'postgres';
const libraries: Readonly<Record<string, (connectionString: string, options: object) => Made | Promise<Made>>> = {
  Drizzle(connectionString, options) {
    const pool = new Pool({ connectionString, ...options });
    return { store: drizzleStore(drizzle(pool), { dialect }), close: () => pool.end() };
  },
  Knex(connectionString, options) {
    const isPlain = Object.keys(options).length === 0;
    const knex = createKnex({
      client: 'pg',
      connection: isPlain ? connectionString : { connectionString, ...options },
    });
    return { store: knexStore(knex, { dialect }), close: () => knex.destroy() };
  },
  async TypeORM(url, extra) {
    const source = await new DataSource({ type: 'postgres', url, extra }).initialize();
    return { store: typeormStore(source, { dialect }), close: () => source.destroy() };
  },
};

test.each(Object.entries(libraries))('check warns of the `query_timeout` of a driver under %s', async (_name, make) => {
  const harmful = [containing('The driver has a `query_timeout`.')];
  for (const [parameters, options, warnings] of [
    ['', {}, []],
    ['?query_timeout=9000', {}, harmful],
    ['', { query_timeout: 9_000 }, harmful],
    ['?statement_timeout=9000', { query_timeout: 0, statement_timeout: 9_000 }, []],
  ] as const) {
    const { store, close } = await make(`${server.url}${parameters}`, options);
    expect([parameters, options, await store.check?.(crypto.randomUUID(), request)]).toEqual([
      parameters,
      options,
      warnings,
    ]);
    await close();
  }
});
