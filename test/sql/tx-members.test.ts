// What handlers can call on a `tx`, read from the objects themselves.
import { randomUUID } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import type { Claim } from 'transfer-callbacks';
import { expect, test } from 'vitest';
import { claimFree } from '../stores/support.js';
import { databases } from './databases.js';
import { describeDatabases, librariesOn } from './libraries.js';
import { makeStore } from './factories.js';

/**
 * What the objects and methods are that a `tx` has, and those of its objects as `object.method`. A name with `*` at its
 * end stands for all that begin so, and none of them is called by the test. What a new version adds is in no list, and the test fails until its effect is known.
 */
interface Members {
  /** Sends statements, and refuses them after the handler. Or an object whose methods do. */
  readonly lent: string;
  /** Would begin or end a transaction, or give its connection back. */
  readonly refused?: string;
  /** Resolves, and does nothing. */
  readonly ignored?: string;
  /** Neither keeps the writes of a handler that fails, nor gives the connection to others. */
  readonly harmless: string;
  /** Leads to the connection itself or to the pool: docs/stores.md names it as outside of the promise. */
  readonly outside?: string;
}

const pg: Members = {
  lent: 'query',
  ignored: 'release end',
  harmless: `connect getStartupConf cancel setTypeParser getTypeParser escapeIdentifier escapeLiteral ref unref
    getTransactionStatus connectionParameters connectionParameters.* config`,
  outside: 'connection activeQuery neonConfig',
};

const kysely: Members = {
  lent: `executeQuery selectFrom selectNoFrom insertInto replaceInto deleteFrom updateTable mergeInto with withRecursive
    withSchema withTables withPlugin withoutPlugins schema schema.*`,
  harmless: `transaction startTransaction connection destroy case fn dynamic dynamic.* introspection introspection.*`,
  outside: 'getExecutor',
};

const drizzle: Members = {
  lent: `transaction $with $count with select selectDistinct selectDistinctOn update insert delete execute query
    refreshMaterializedView setTransaction`,
  harmless: 'rollback getTransactionConfigSQL $cache $cache.invalidate',
  outside: 'session dialect _',
};

const knex: Members = {
  lent: `raw batchInsert transaction transactionProvider savepoint schema schema.* queryBuilder andWhereJson*`,
  refused: 'commit rollback',
  harmless: `initialize destroy ref withUserParams userParams disableProcessing enableProcessing isCompleted fn fn.*
    executionPromise`,
  outside: 'client context migrate seed',
};

const typeorm: Members = {
  lent: `transaction query sql createQueryBuilder preload save remove softRemove recover insert upsert update updateAll delete
    deleteAll softDelete restore exists existsBy count countBy sum average minimum maximum callAggregateFun find* clear
    increment decrement incrementOrDecrementBy getRepository getTreeRepository getMongoRepository withRepository queryRunner
    queryRunner.query queryRunner.sql queryRunner.stream queryRunner.startTransaction`,
  refused: `release queryRunner.release queryRunner.releasePostgresConnection queryRunner.commitTransaction
    queryRunner.rollbackTransaction`,
  harmless: `hasId getId create merge normalizeAndValidateWhereCriteria repositories plainObjectToEntityTransformer
    plainObjectToEntityTransformer.* queryRunner.create* queryRunner.drop* queryRunner.add* queryRunner.rename*
    queryRunner.change* queryRunner.update* queryRunner.clear* queryRunner.get* queryRunner.has* queryRunner.load*
    queryRunner.insert* queryRunner.delete* queryRunner.build* queryRunner.escape* queryRunner.enable* queryRunner.disable*
    queryRunner.execute* queryRunner.before* queryRunner.after* queryRunner.is* queryRunner.replace* queryRunner.convert* queryRunner.selectTypeormMetadataSql queryRunner.generateIndexName`,
  outside: 'dataSource connection queryRunner.connect queryRunner.releaseCallback',
};

const sequelize: Members = {
  lent: '',
  refused: 'commit rollback begin prepareEnvironment cleanup forceCleanup',
  harmless: 'setDeferrable afterCommit options LOCK',
  outside: 'sequelize connection parent',
};

/** Models of the test are `written` and `locked`. */
const prisma: Members = {
  lent: `$executeRaw $executeRawUnsafe $executeRawInternal $queryRaw $queryRawUnsafe $queryRawTyped $queryRawInternal
    $runCommandRaw $transaction written written.* locked locked.* Written Written.* Locked Locked.*`,
  harmless: '$metrics $metrics.*',
  outside: '$parent $applyPendingMigrations',
};

const members: Readonly<Record<string, Members>> = {
  pg,
  '@neondatabase/serverless': pg,
  'postgres.js': {
    lent: 'unsafe savepoint file* notify',
    refused: 'prepare',
    harmless: 'types typed array json',
  },
  mysql2: {
    lent: 'query execute prepare connection connection.query connection.execute connection.prepare',
    refused: `beginTransaction commit rollback reset changeUser connection.beginTransaction connection.commit
      connection.rollback connection.reset connection.changeUser`,
    ignored: 'release end connection.release connection.end',
    harmless: `Promise destroy close ping connect escape escapeId format pause resume unprepare config
      connection.destroy connection.close connection.ping connection.connect connection.escape connection.escapeId
      connection.format connection.pause connection.resume connection.unprepare connection.raw`,
    outside: `createBinlogStream connection.createBinlogStream connection.promise connection.write* connection.startTLS
      connection.protocolError connection.fatalError connection.handlePacket connection.addCommand
      connection.serverHandshake connection.state connection.stream connection.config connection.authorized`,
  },
  'Prisma 7': prisma,
  'Prisma 6': prisma,
  Drizzle: drizzle,
  'Drizzle on postgres.js': drizzle,
  Kysely: kysely,
  Knex: knex,
  TypeORM: typeorm,
  Sequelize: sequelize,
};

type Thing = Readonly<Record<string, unknown>>;

/** What every object, function, emitter, map and promise has. */
const builtIn = [Object, Function, EventEmitter, Map, Promise].map(({ prototype }) => prototype as object);
const ofFunctions = ['length', 'name', 'prototype', 'arguments', 'caller'];
const common = new Set(['constructor', ...ofFunctions, ...Reflect.ownKeys(EventEmitter.prototype).map(String)]);

/** Returns the names of an object's own and inherited properties. Those that begin with `_` are the library's own. */
function listNames(value: object): string[] {
  const names = new Set<string | symbol>();
  for (let at: object | null = value; at !== null && !builtIn.includes(at); at = Reflect.getPrototypeOf(at)) {
    for (const name of Reflect.ownKeys(at)) names.add(name);
  }
  return [...names].filter(
    (name): name is string => typeof name === 'string' && !/^_./.test(name) && !common.has(name),
  );
}

const isThing = (value: unknown): value is Thing =>
  ((typeof value === 'object' && value !== null) || typeof value === 'function') && !Array.isArray(value);

function read(value: Thing, name: string): unknown {
  try {
    return value[name];
  } catch {
    // A getter that does not work on this object gives nothing to a handler either.
    return undefined;
  }
}

/** Returns the names of the methods and objects of `tx`, and those of its objects unless they lead away from it. */
function listMembers(tx: Thing, names: readonly string[], isOutside: (name: string) => boolean): string[] {
  return names.flatMap((name) => {
    const value = read(tx, name);
    if (!isThing(value)) return [];
    if (typeof value === 'function' || isOutside(name)) return [name];
    const inner = listNames(value).filter((each) => typeof read(value, each) === 'function');
    return [name, ...inner.map((each) => `${name}.${each}`)];
  });
}

const split = (list = ''): string[] => list.split(/\s+/).filter((name) => name !== '');
const matches = (list: string | undefined, name: string): boolean =>
  split(list).some((each) => (each.endsWith('*') ? name.startsWith(each.slice(0, -1)) : each === name));

/** Calls a method of `tx`, or of an object of it, without arguments. Resolves with its error, or with how it went. */
async function call(tx: Thing, path: string): Promise<unknown> {
  const [first = '', second] = path.split('.');
  try {
    const target = second === undefined ? tx : (tx[first] as Thing);
    const method = target[second ?? first];
    if (typeof method !== 'function') return 'missing';
    const reply: unknown = Reflect.apply(method, target, []);
    const replied = Promise.resolve(reply).then(() => 'resolved');
    return await Promise.race([replied.catch((error: unknown) => error), setTimeout(300, 'late')]);
  } catch (error) {
    return error;
  }
}

const tried = databases.filter(({ name }) => ['PostgreSQL 18', 'MariaDB'].includes(name));
describeDatabases(tried, ({ dialect }, server) => {
  for (const { name: library, open, prepare } of librariesOn(dialect, server)) {
    const known: Members = members[library] ?? { lent: '', harmless: '' };

    test(`every method and object of tx of ${library} is known`, async ({ onTestFinished }) => {
      const { client, store } = await prepare(onTestFinished, 1);
      const claim = await claimFree(store);
      const tx = claim.tx as Thing;
      // Prisma's proxy of a transaction lists no names. Knex's `tx` also builds queries.
      const names = new Set(listNames(library.startsWith('Prisma') ? (client as Thing) : tx));
      if (library === 'Knex') {
        const { queryBuilder } = tx as { readonly queryBuilder: () => object };
        for (const name of listNames(queryBuilder())) names.delete(name);
      }
      const all = Object.values(known).join(' ');
      const found = listMembers(tx, [...names], (name) => matches(known.outside, name));
      await claim.release();
      expect(found.length).toBeGreaterThan(2);
      expect(found.filter((name) => !matches(all, name))).toEqual([]);
    });

    test(`no method of tx of ${library} keeps the writes of a handler that fails`, async ({ onTestFinished }) => {
      let opened = await open(server.url, 2);
      onTestFinished(() => void opened.close());
      const begin = async (id: string): Promise<Claim<unknown>> => {
        const claim = await claimFree(makeStore({ name: library }, opened.client, dialect), {}, id);
        await opened.transaction?.write(claim.tx, id);
        return claim;
      };
      await makeStore({ name: library }, opened.client, dialect).migrate();
      const refused = split(known.refused);
      for (const name of [...refused, ...split(`${known.ignored} ${known.lent} ${known.harmless}`)]) {
        if (name.endsWith('*')) continue;
        const id = randomUUID();
        const claim = await begin(id);
        const ended = await call(claim.tx as Thing, name);
        if (refused.includes(name) && ended !== 'missing') expect([name, ended]).toMatchObject([name, control]);
        if (matches(known.ignored, name)) expect([name, ended]).toEqual([name, 'resolved']);
        const written = Promise.resolve(opened.transaction?.write(claim.tx, id)).catch(() => undefined);
        await Promise.race([written, setTimeout(1_000)]);
        await claim.release();
        expect([name, await opened.transaction?.count(id)]).toEqual([name, 0]);
        // A method may have closed the only connection of its client.
        if (!split(known.harmless).includes(name)) continue;
        void opened.close();
        opened = await open(server.url, 2);
      }
    });
  }
});

const control = { code: 'TRANSACTION_CONTROL' };
