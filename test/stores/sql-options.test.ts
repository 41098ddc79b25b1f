import { createConnection, createPool, type Connection } from 'mysql2';
import { Client, Pool } from 'pg';
import {
  drizzleStore,
  knexStore,
  kyselyStore,
  mysqlStore,
  pgStore,
  postgresJsStore,
  prismaStore,
  sequelizeStore,
  sqlStore,
  typeormStore,
} from 'transfer-callbacks';
import { describe, expect, onTestFinished, test } from 'vitest';
import { containing } from '../support/helpers/containing.js';

type Factory = (library: unknown, options?: object) => unknown;

const method = (): void => undefined;
const withDialect = (make: unknown): Factory => {
  const factory = make as Factory;
  return (library, options = {}) => factory(library, { dialect: 'mysql', ...options });
};
const builders = {
  prismaStore,
  drizzleStore,
  kyselyStore,
  knexStore,
  typeormStore,
  sequelizeStore,
} as unknown as Readonly<Record<string, Factory>>;

/** Each factory by its name, the name of its first argument, and the methods that this has. */
const factories: readonly (readonly [name: string, make: Factory, argument: string, methods: string[]])[] = [
  ['pgStore', pgStore as Factory, 'pool', ['connect']],
  ['mysqlStore', mysqlStore as Factory, 'pool', ['getConnection']],
  ['postgresJsStore', postgresJsStore as Factory, 'sql', ['unsafe', 'begin']],
  ['prismaStore', withDialect(prismaStore), 'prisma', ['$queryRawUnsafe', '$transaction', '$extends']],
  ['drizzleStore', withDialect(drizzleStore), 'db', ['execute', 'transaction']],
  ['kyselyStore', withDialect(kyselyStore), 'db', ['executeQuery', 'transaction']],
  ['knexStore', withDialect(knexStore), 'knex', ['raw', 'transaction']],
  ['typeormStore', withDialect(typeormStore), 'source', ['query', 'transaction']],
  ['sequelizeStore', withDialect(sequelizeStore), 'sequelize', ['query', 'transaction']],
];
const toLibrary = (methods: readonly string[]) => Object.fromEntries(methods.map((name) => [name, method]));

/** A connection of mysql2. No server is there. */
function unconnected(): Connection {
  const connection = createConnection('mysql://payouts@127.0.0.1:1/payouts');
  connection.on('error', method);
  onTestFinished(() => {
    connection.destroy();
  });
  return connection;
}

function refused(message: string): unknown {
  return expect.objectContaining({ code: 'INVALID_ARGUMENT', message: containing(message) });
}

test('pgStore refuses a client, which connects only once', () => {
  expect(() => pgStore(new Client() as never)).toThrow(refused('Write `pgStore(new Pool({ connectionString }))`.'));
});

test('mysqlStore refuses a pool of callbacks, with the code that makes one of promises of it', () => {
  const pool = createPool({ uri: 'mysql://payouts@127.0.0.1/payouts' });
  expect(() => mysqlStore(pool)).toThrow(refused('Write `mysqlStore(pool.promise())`.'));
});

test('mysqlStore refuses a connection, for callbacks and for promises', () => {
  const connection = unconnected();
  for (const given of [connection, connection.promise()]) {
    expect(() => mysqlStore(given as never)).toThrow(refused('Write `mysqlStore(createPool(url))`.'));
  }
});

test.each([
  ['a transaction of Kysely or Knex', () => ({ isTransaction: true })],
  ['a transaction of TypeORM', () => ({ queryRunner: { query: method } })],
  ['a transaction of Drizzle', () => ({ rollback: method })],
  ['Drizzle on a client of pg', () => ({ $client: new Client() })],
  ['Drizzle on a connection of mysql2', () => ({ $client: unconnected() })],
])('%s is refused in place of a pool, with the code that makes a store', (_what, makeMarks) => {
  for (const [name, make, argument, methods] of factories.slice(2)) {
    const library = toLibrary(methods);
    const onPool = { isTransaction: false, queryRunner: undefined, $client: new Pool() };
    expect(make({ ...library, ...onPool })).toMatchObject({ transactional: true });
    expect(() => make({ ...library, ...makeMarks() })).toThrow(
      refused(
        `Expected \`${argument}\` to be on a pool, and neither on a single connection nor a transaction, got an object. Write \`${name}(`,
      ),
    );
  }
});

describe.each(factories)('%s', (name, make, argument, methods) => {
  const library = toLibrary(methods);
  const pools: Readonly<Record<string, string>> = {
    pgStore: 'a pool of pg, and no client',
    mysqlStore: 'a pool of mysql2/promise',
  };
  const expected = pools[name] ?? `an object with ${methods.join(' and ')}`;

  test('refuses what is not its library, and shows no password of it', () => {
    for (const [given, got] of [
      [undefined, 'undefined'],
      [{}, 'an object'],
      ['postgres://payouts:hunter2@127.0.0.1/payouts', 'a string of 44 characters'],
    ] as const) {
      expect(() => make(given)).toThrow(
        refused(`Expected \`${argument}\` to be ${expected}, got ${got}. Write \`${name}(`),
      );
    }
    for (const method of methods) {
      expect(() => make({ ...library, [method]: undefined })).toThrow(
        refused(`Expected \`${argument}\` to be ${expected}, got an object.`),
      );
    }
  });

  test('accepts its library, with the longest names and without a limit of idle time, and refuses any other option', () => {
    for (const options of [{}, { table: 'x'.repeat(63), schema: 'é'.repeat(31), idleTimeoutMs: null }]) {
      expect(make(library, options)).toMatchObject({ transactional: true });
    }
    expect(() => make(library, { prefix: 'x' })).toThrow(refused('Unknown option `prefix`; known are '));
    expect(() => make(library, { table: '' })).toThrow(refused('Expected `table` to be a name of 1 to 63 bytes'));
  });
});

test.each<[object, string]>([
  [
    { table: 'é'.repeat(32) },
    "Expected `table` to be a name of 1 to 63 bytes, got a string of 32 characters. Write `table: 'transfer_callbacks'`.",
  ],
  [{ table: 'a\0b' }, 'Expected `table` to be a name of 1 to 63 bytes'],
  [{ schema: 5 }, "Expected `schema` to be a name of 1 to 63 bytes, got 5. Write `schema: 'payouts'`."],
  [{ idleTimeoutMs: 0 }, 'Expected `idleTimeoutMs` to be a whole number from 1 to 2147483647, got 0.'],
])('a SQL store refuses the options %j', (options, message) => {
  expect(() => (pgStore as Factory)({ connect: method }, options)).toThrow(refused(message));
});

test.each(Object.entries(builders))('%s refuses no dialect, and one that it does not know', (name, make) => {
  const [, , , methods] = factories.find(([each]) => each === name) ?? expect.fail(name);
  const named = "Expected `dialect` to be 'postgres', 'mysql' or 'sqlite', got ";
  for (const [options, got] of [
    [{}, "undefined. Write `dialect: 'postgres'`."],
    [undefined, "undefined. Write `dialect: 'postgres'`."],
    [null, "undefined. Write `dialect: 'postgres'`."],
    [{ dialect: 'mariadb' }, '"mariadb". Write `dialect: \'mysql\'`.'],
  ] as const) {
    expect(() => make(toLibrary(methods), options as object)).toThrow(refused(`${named}${got}`));
  }
});

test.each<[unknown, string]>([
  [undefined, 'Expected `database` to be an object with `dialect`, `query` and `transaction`, got undefined.'],
  [{ dialect: 'mysql' }, 'Expected `database` to be an object with'],
  [{ query: method, transaction: method }, "Expected `dialect` to be 'postgres', 'mysql' or 'sqlite', got undefined."],
  [{ dialect: 'mysql', query: method }, 'Expected `transaction` to be a function, got undefined.'],
  [{ dialect: 'mysql', query: method, transaction: 5 }, 'Expected `transaction` to be a function, got 5.'],
])('sqlStore(%o) is refused', (database, message) => {
  expect(() => sqlStore(database as never)).toThrow(refused(message));
});

test('pgStore adds one listener for errors to a pool that has none', () => {
  const [heard, unheard] = [new Pool(), new Pool()];
  heard.on('error', () => undefined);
  for (const given of [heard, unheard, unheard]) pgStore(given);
  expect([heard.listenerCount('error'), unheard.listenerCount('error')]).toEqual([1, 1]);
});
