import { fileURLToPath } from 'node:url';
import { DataTypes, Sequelize, type Transaction } from 'sequelize';
import { DataSource, EntitySchema, type DataSourceOptions, type EntityManager } from 'typeorm';
import { fortyRows, toTransaction, withoutTransaction, type Library, type Opened } from './opened.js';

/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- as TypeORM documents it. */
const entities = [
  new EntitySchema({
    name: 'written',
    columns: { id: { type: 'int', primary: true, generated: true }, name: { type: 'varchar' } },
  }),
  new EntitySchema({ name: 'locked', columns: { name: { type: 'varchar', primary: true } } }),
];
/* eslint-enable @typescript-eslint/no-unsafe-class-instance-assignment */

export const typeorm: Library = {
  name: 'TypeORM',
  open: {
    postgres: (url, max) => openSource({ type: 'postgres', url, poolSize: max, entities, extra: toParameters(url) }),
    mysql: (url, max) => openSource({ type: 'mysql', url, poolSize: max, entities }),
    sqlite: async (url) =>
      withoutTransaction(await openSource({ type: 'better-sqlite3', database: fileURLToPath(url), entities })),
  },
};

/** TypeORM and Sequelize pass the parameters of an address to no driver. */
function toParameters(url: string): object {
  return Object.fromEntries(new URL(url).searchParams);
}

async function openSource(options: DataSourceOptions): Promise<Opened<DataSource, EntityManager>> {
  const source = await new DataSource(options).initialize();
  return {
    client: source,
    transaction: toTransaction<EntityManager>({
      insert: (tx, table, name) => tx.insert(table, { name }),
      read: (name) => source.manager.findBy('written', { name }),
      send: (tx, sql) => tx.query(sql),
    }),
    leave: (tx: EntityManager) => tx.transaction((inner) => inner.query('SELECT * FROM not_there')),
    nest: (tx: EntityManager, work) => tx.transaction((inner) => work(inner as never)),
    repeats: {
      save: (tx: EntityManager, name) => tx.save('written', [...fortyRows(name)], { chunk: 1 }),
      async repository(tx: EntityManager, name) {
        const repository = tx.getRepository('written');
        for (const row of fortyRows(name)) await repository.insert(row);
      },
    },
    ends: {
      releaseManager: (tx: EntityManager) => tx.release(),
      releaseNestedManager: (tx: EntityManager) => tx.transaction((inner) => inner.release()),
      releaseNested: (tx: EntityManager) => tx.transaction(async (inner) => inner.queryRunner?.release()),
      release: (tx: EntityManager) => tx.queryRunner?.release(),
      commitTransaction: (tx: EntityManager) => tx.queryRunner?.commitTransaction(),
      rollbackTransaction: (tx: EntityManager) => tx.queryRunner?.rollbackTransaction(),
      startTransaction: (tx: EntityManager) => tx.queryRunner?.startTransaction(),
      async startAndCommit({ queryRunner }: EntityManager) {
        await queryRunner?.startTransaction();
        await queryRunner?.commitTransaction();
      },
    },
    close: () => source.destroy(),
  };
}

export const sequelize: Library = {
  name: 'Sequelize',
  open: {
    postgres: openSequelize,
    mysql: openSequelize,
  },
};

function openSequelize(url: string, max: number): Opened<Sequelize, Transaction> {
  const client = new Sequelize(url, { logging: false, pool: { max }, dialectOptions: toParameters(url) });
  const settings = { timestamps: false, freezeTableName: true };
  const models = {
    written: client.define('written', { name: DataTypes.STRING }, settings),
    locked: client.define('locked', { name: { type: DataTypes.STRING, primaryKey: true } }, settings),
  };
  return {
    client,
    transaction: toTransaction<Transaction>({
      insert: (transaction, table, name) => models[table].create({ name }, { transaction }),
      read: (name) => models.written.findAll({ where: { name } }),
      send: (transaction, sql) => client.query(sql, { transaction }),
    }),
    leave: (transaction: Transaction) =>
      client.transaction({ transaction }, (inner) => client.query('SELECT * FROM not_there', { transaction: inner })),
    nest: (transaction: Transaction, work) => client.transaction({ transaction }, (inner) => work(inner as never)),
    ends: {
      commit: (transaction: Transaction) => transaction.commit(),
      rollback: (transaction: Transaction) => transaction.rollback(),
    },
    close: () => client.close(),
  };
}
