/**
 * What the objects and methods are that a `tx` has, and those of its objects as `object.method`. A name with `*` at its
 * end stands for all that begin so, and none of them is called by the test. What a new version adds is in no list, and the test fails until its effect is known.
 */
export interface Members {
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

export const members: Readonly<Record<string, Members>> = {
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
