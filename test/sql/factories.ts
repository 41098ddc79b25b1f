import * as stores from 'transfer-callbacks';
import type { SqlStore } from 'transfer-callbacks';
import type { Dialect } from './databases.js';
import type { Library } from './opened.js';

interface Options {
  readonly dialect: Dialect;
  readonly table?: string;
}
type Make = (client: never, options: Options) => unknown;

/** The factory of each library, and how SQLite's own drivers are passed to `sqlStore`. */
const factories: Readonly<Record<string, Make>> = {
  pg: (client, { table }) => stores.pgStore(client, { table }),
  '@neondatabase/serverless': (client, { table }) => stores.pgStore(client, { table }),
  'postgres.js': (client, { table }) => stores.postgresJsStore(client, { table }),
  mysql2: (client, { table }) => stores.mysqlStore(client, { table }),
  'better-sqlite3': (
    file: { prepare: (sql: string) => { reader: boolean; all: () => unknown; run: () => unknown } },
    { table },
  ) =>
    stores.sqlStore(
      {
        dialect: 'sqlite',
        query(sql) {
          const statement = file.prepare(sql);
          return statement.reader ? statement.all() : statement.run();
        },
      },
      { table },
    ),
  'Prisma 7': stores.prismaStore,
  'Prisma 6': stores.prismaStore,
  Drizzle: stores.drizzleStore,
  'Drizzle on postgres.js': stores.drizzleStore,
  Kysely: stores.kyselyStore,
  Knex: stores.knexStore,
  TypeORM: stores.typeormStore,
  Sequelize: stores.sequelizeStore,
};

/** Makes the store of a library, whose `tx` is that of the library's `transaction`. */
export function makeStore(
  { name }: Pick<Library, 'name'>,
  client: unknown,
  dialect: Dialect,
  options: Pick<Options, 'table'> = {},
): SqlStore<unknown> {
  return factories[name]?.(client as never, { ...options, dialect }) as SqlStore<unknown>;
}
