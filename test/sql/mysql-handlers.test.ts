// What ends or commits the transaction of a handler in MySQL and MariaDB. A deadlock: handlers.test.ts.
import { randomUUID } from 'node:crypto';
import { createConnection, type Connection } from 'mysql2/promise';
import { beforeAll, test, type TestContext } from 'vitest';
import { claimFree } from '../stores/support.js';
import { databases, type Started } from './databases.js';
import { describeDatabases, librariesOn } from './libraries.js';

const ignore = (): void => undefined;

/** How a handler and its rival meet. */
interface Meeting {
  readonly rival: Connection;
  /** The name of a row of `locked`. */
  readonly row: string;
  /** Sends a statement of the handler. */
  readonly send: (sql: string) => Promise<unknown>;
  /** Inserts this row as users of the library do. */
  readonly insert: () => Promise<unknown>;
}

async function waitInVain({ rival, row, send, insert }: Meeting): Promise<unknown> {
  await send('SET SESSION innodb_lock_wait_timeout = 1');
  await rival.beginTransaction();
  await rival.query('INSERT INTO locked VALUES (?)', [row]);
  return insert();
}

/** The errors after which the server has rolled back the whole transaction, and how a handler meets them. */
const endings = [
  {
    title: 'a row that has changed since it was read',
    only: 'MariaDB 11.8',
    async meet({ rival, row, send }: Meeting): Promise<unknown> {
      await send('SELECT * FROM locked');
      await rival.query('INSERT INTO locked VALUES (?)', [row]);
      return send(`DELETE FROM locked WHERE name = '${row}'`);
    },
  },
  { title: 'a lock wait timeout', meet: waitInVain },
  {
    title: 'a full lock table',
    // A procedure does what the server does when a handler has locked 10 000 pages, and a buffer pool of 5 MB is full.
    async meet({ rival, send }: Meeting): Promise<unknown> {
      const fail = "ROLLBACK; SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1206, MESSAGE_TEXT = 'full';";
      await rival.query(`CREATE PROCEDURE IF NOT EXISTS fill_locks() BEGIN ${fail} END`);
      return send('CALL fill_locks()');
    },
  },
];

const ofMySql = databases.filter(({ dialect }) => dialect === 'mysql');
describeDatabases(ofMySql, ({ name, start }, server) => {
  /** Rolls back the whole transaction after a lock wait timeout. */
  let strict: Started;
  beforeAll(async () => {
    strict = await start(['--innodb-rollback-on-timeout=ON']);
    return () => strict.stop();
  });

  for (const { name: library, prepare } of librariesOn('mysql', server)) {
    /** Claims a callback, and writes. The rival is another connection. */
    const begin = async ({ url }: { url: string }, onTestFinished: TestContext['onTestFinished']) => {
      const rival = await createConnection(url);
      onTestFinished(() => {
        rival.destroy();
      });
      const { store, transaction } = await prepare(onTestFinished, 2, url);
      const id = randomUUID();
      const claim = await claimFree(store, {}, id);
      await transaction.write(claim.tx, id);
      const row = randomUUID();
      return {
        ...{ rival, row, claim },
        send: async (sql: string): Promise<unknown> => transaction.send(claim.tx, sql),
        insert: async () => transaction.lock?.(claim.tx, row),
        /** Writes once more, as a handler does that has swallowed an error. */
        goOn: async (): Promise<unknown> => transaction.write(claim.tx, id),
        count: () => transaction.count(id),
      };
    };

    for (const ending of endings.filter(({ only = name }) => only === name)) {
      test.concurrent(
        `the writes of a handler of ${library} after ${ending.title} has ended its transaction are not kept`,
        async ({ expect, onTestFinished }) => {
          const { claim, count, goOn, ...meeting } = await begin(strict, onTestFinished);
          await expect(ending.meet(meeting)).rejects.toThrow();
          await goOn().catch(ignore);
          await expect(claim.settle()).rejects.toThrow();
          expect(await count()).toBe(0);
        },
      );
    }

    test.concurrent(
      `a handler of ${library} that goes on after a lock wait timeout, which by default ends no transaction, is handled`,
      async ({ expect, onTestFinished }) => {
        const { claim, count, goOn, ...meeting } = await begin(server, onTestFinished);
        await expect(waitInVain(meeting)).rejects.toThrow();
        await goOn();
        await claim.settle();
        expect(await count()).toBe(2);
      },
    );

    test.concurrent(
      `LOCK TABLES in a handler of ${library} is refused if \`tx\` sees it, and undone if it does not`,
      async ({ expect, onTestFinished }) => {
        const { claim, count, rival, send } = await begin(server, onTestFinished);
        const table = `alone_${randomUUID().slice(0, 8)}`;
        await rival.query(`CREATE TABLE ${table} (name varchar(9))`);
        // What stores.md says: Sequelize sends it past `tx`.
        const texts = library === 'Sequelize' ? [] : [`LOCK TABLES ${table} WRITE`, `\nlock table ${table} read`];
        for (const text of texts) {
          await expect(send(text)).rejects.toThrow('it would commit what was written so far');
        }
        // MySQL itself refuses it in a prepared statement, as Prisma sends it.
        const isLocked = await send(`/* */ LOCK TABLES ${table} WRITE`).then(
          () => true,
          () => false,
        );
        await claim.release();
        await rival.query('SET lock_wait_timeout = 10');
        await rival.query(`INSERT INTO ${table} VALUES ('free')`);
        expect(await count()).toBe(isLocked ? 1 : 0);
      },
    );
  }
});
