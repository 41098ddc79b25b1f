// Handlers get the transaction of the library, as the library types it, without an annotation.
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { Knex } from 'knex';
import type { Kysely, Transaction as KyselyTransaction } from 'kysely';
import type { Sequelize, Transaction } from 'sequelize';
import type { DataSource, EntityManager } from 'typeorm';
import { expectTypeOf } from 'vitest';
import { drizzleStore, knexStore, kyselyStore, sequelizeStore, typeormStore, type SqlStore } from 'transfer-callbacks';

interface Tables {
  ledger: { id: string };
}
declare const drizzle: NodePgDatabase;
declare const knex: Knex;
declare const kysely: Kysely<Tables>;
declare const sequelize: Sequelize;
declare const source: DataSource;
const onPostgres = { dialect: 'postgres' } as const;

export const stores = {
  drizzle: drizzleStore(drizzle, onPostgres),
  knex: knexStore(knex, onPostgres),
  kysely: kyselyStore(kysely, onPostgres),
  sequelize: sequelizeStore(sequelize, onPostgres),
  typeorm: typeormStore(source, onPostgres),
};
expectTypeOf(stores.drizzle).toEqualTypeOf<SqlStore<Parameters<Parameters<NodePgDatabase['transaction']>[0]>[0]>>();
expectTypeOf(stores.knex).toEqualTypeOf<SqlStore<Knex.Transaction>>();
expectTypeOf(stores.kysely).toEqualTypeOf<SqlStore<KyselyTransaction<Tables>>>();
expectTypeOf(stores.sequelize).toEqualTypeOf<SqlStore<Transaction>>();
expectTypeOf(stores.typeorm).toEqualTypeOf<SqlStore<EntityManager>>();

// SQLite has no transaction for a handler.
expectTypeOf(knexStore(knex, { dialect: 'sqlite' })).toEqualTypeOf<SqlStore<undefined>>();

// @ts-expect-error -- it does not say what it talks to.
knexStore(knex);
// @ts-expect-error -- MariaDB is `mysql`.
knexStore(knex, { dialect: 'mariadb' });
