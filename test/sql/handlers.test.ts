// What handlers leave running and end through their library.
import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { createConnection, type RowDataPacket } from 'mysql2/promise';
import { expect, test } from 'vitest';
import { later } from '../core/support.js';
import { claimFree, settles } from '../stores/support.js';
import { databases } from './databases.js';
import { describeDatabases, librariesOn } from './libraries.js';

const ignore = (): void => undefined;

/** What the sessions of a MySQL have set, each setting once. */
const sessions = `SELECT DISTINCT a.VARIABLE_VALUE AS autocommit, t.VARIABLE_VALUE = @@GLOBAL.wait_timeout AS isOwnTimeout
FROM performance_schema.variables_by_thread a JOIN performance_schema.variables_by_thread t USING (THREAD_ID)
WHERE a.VARIABLE_NAME = 'autocommit' AND t.VARIABLE_NAME = 'wait_timeout'`;
const locks = `SELECT (SELECT COUNT(*) FROM performance_schema.metadata_locks WHERE OBJECT_TYPE = 'USER LEVEL LOCK') AS locks,
(SELECT COUNT(*) FROM information_schema.innodb_trx) AS transactions`;

/** Finds who waits for a row that this connection has locked. */
const waiting = {
  mysql: `SELECT 1 FROM performance_schema.data_lock_waits
JOIN information_schema.innodb_trx ON trx_id = BLOCKING_ENGINE_TRANSACTION_ID WHERE trx_mysql_thread_id = CONNECTION_ID()`,
  mariadb: `SELECT 1 FROM information_schema.innodb_lock_waits
JOIN information_schema.innodb_trx ON trx_id = blocking_trx_id WHERE trx_mysql_thread_id = CONNECTION_ID()`,
};

const transactional = databases.filter(({ dialect }) => dialect !== 'sqlite');
describeDatabases(transactional, ({ name, dialect }, server) => {
  for (const { name: library, prepare } of librariesOn(dialect, server)) {
    test.concurrent(
      `what a nested transaction of a failed handler of ${library} would write later is not written`,
      async ({ expect, onTestFinished }) => {
        const { nest, store, transaction, expectNext } = await prepare(onTestFinished);
        if (nest === undefined) return;
        const id = randomUUID();
        const [begun, goOn] = [later(), later()];
        const first = await claimFree(store, {}, id);
        const nested = Promise.resolve(
          nest(first.tx as never, async (inner) => {
            begun.resolve();
            await goOn.promise;
            await transaction.write(inner, id);
          }),
        );
        await begun.promise;
        const released = first.release();
        goOn.resolve();
        await expect(nested).rejects.toThrow();
        await released;
        expect(await transaction.count(id)).toBe(0);
        await expectNext(id);
      },
    );

    test.concurrent(
      `nothing is kept of a failed handler of ${library} that still writes row after row`,
      async ({ expect, onTestFinished }) => {
        const { repeats = {}, store, transaction, expectNext } = await prepare(onTestFinished);
        for (const [way, repeat] of Object.entries(repeats)) {
          for (const end of ['release', 'settle'] as const) {
            const id = randomUUID();
            const claim = await claimFree(store, {}, id);
            // Its success cannot be recorded in another transaction.
            if (end === 'settle') await transaction.send(claim.tx, '/* by an ORM */ ROLLBACK AND CHAIN');
            const written = Promise.resolve(repeat(claim.tx as never, id)).catch(ignore);
            await transaction.write(claim.tx, id);
            await claim[end]().catch(ignore);
            await written;
            expect([way, end, await transaction.count(id)]).toEqual([way, end, 0]);
            await expectNext(id);
          }
        }
      },
    );

    test.concurrent(
      `a nested transaction that a handler of ${library} has left running, and that fails, is undone, and the handler is handled`,
      async ({ expect, onTestFinished }) => {
        const { nest, store, transaction } = await prepare(onTestFinished);
        if (nest === undefined) return;
        const [id, inNested] = [randomUUID(), randomUUID()];
        const [begun, goOn] = [later(), later()];
        const claim = await claimFree(store, {}, id);
        await transaction.write(claim.tx, id);
        const nested = nest(claim.tx as never, async (inner) => {
          await transaction.write(inner, inNested);
          begun.resolve();
          await goOn.promise;
          throw new Error('the nested part fails');
        });
        nested.then(undefined, ignore);
        await begun.promise;
        const handled = settles(claim);
        goOn.resolve();
        expect([await handled, await transaction.count(id), await transaction.count(inNested)]).toEqual([true, 1, 0]);
      },
    );

    test.concurrent(
      `a handler of ${library} whose nested transaction lasts three times storeTimeoutMs is rolled back`,
      async ({ expect, onTestFinished }) => {
        const { nest, store, transaction, expectNext } = await prepare(onTestFinished);
        if (nest === undefined) return;
        const id = randomUUID();
        const timeoutMs = 400;
        const begun = later();
        const claim = await claimFree(store, { timeoutMs }, id);
        await transaction.write(claim.tx, id);
        const nested = Promise.resolve(
          nest(claim.tx as never, async (inner) => {
            begun.resolve();
            await setTimeout(3 * timeoutMs);
            await transaction.write(inner, id);
          }),
        );
        nested.catch(ignore);
        await begun.promise;
        await expect(claim.settle()).rejects.toThrow('rolled back');
        // Before the nested transaction has ended: its end reaches no other delivery.
        await expectNext(id);
        await nested.catch(ignore);
        expect(await transaction.count(id)).toBe(1);
      },
    );

    // Prisma 6 itself keeps the connection of a COMMIT that was refused.
    if (dialect === 'postgres' && library !== 'Prisma 6') {
      test.concurrent(
        `a COMMIT of ${library} that is refused fails its delivery, and hinders none that waits for the connection`,
        async ({ expect, onTestFinished }) => {
          const { store, transaction } = await prepare(onTestFinished, 1);
          const [id, next] = [`refused ${randomUUID()}`, randomUUID()];
          const claim = await claimFree(store, {}, id);
          await transaction.write(claim.tx, id);
          const waiting = claimFree(store, {}, next);
          const handled = settles(claim);
          const later = await waiting;
          await transaction.write(later.tx, next);
          await later.settle();
          expect([await handled, await transaction.count(id), await transaction.count(next)]).toEqual([false, 0, 1]);
        },
      );
    }

    // With the default settings of MariaDB 11.8 a transaction that has read may change no row that was changed since.
    test.concurrent(
      `a handler of ${library} that reads, and goes on for two renewals of its lease, is handled`,
      async ({ expect, onTestFinished }) => {
        const { store, transaction } = await prepare(onTestFinished);
        const id = randomUUID();
        const claim = await claimFree(store, { leaseMs: 1_500 }, id);
        await transaction.read(claim.tx);
        for (let renewed = 0; renewed < 2; renewed += 1) {
          await setTimeout(500);
          expect(await claim.renew()).toBe(true);
        }
        await transaction.write(claim.tx, id);
        await claim.settle();
        expect([await transaction.count(id), (await store.read(id)).state]).toEqual([1, 'handled']);
      },
    );

    if (dialect === 'mysql') {
      test.concurrent(
        `a handler of ${library} is rolled back if what it has left running is the victim of a deadlock`,
        async ({ expect, onTestFinished }) => {
          const { nest, store, transaction, expectNext } = await prepare(onTestFinished);
          if (nest === undefined) return;
          const rival = await createConnection(server.url);
          onTestFinished(() => {
            rival.destroy();
          });
          const [id, first, second] = [randomUUID(), randomUUID(), randomUUID()];
          const insertRows = (...names: string[]) =>
            rival.query('INSERT INTO locked VALUES ?', [names.map((each) => [each])]);
          await rival.beginTransaction();
          // InnoDB ends the transaction that has written less.
          await insertRows(second, ...Array.from({ length: 200 }, () => randomUUID()));
          const sent = later();
          const claim = await claimFree(store, {}, id);
          await transaction.write(claim.tx, id);
          const nested = nest(claim.tx as never, async (inner) => {
            await transaction.lock?.(inner, first);
            const last = transaction.lock?.(inner, second);
            sent.resolve();
            await last;
          });
          nested.then(undefined, ignore);
          await sent.promise;
          // Prisma sends it later, and only if the handler has not ended by then. InnoDB refreshes what it shows only if
          // nobody has read it for 0.1 s, and several tests read it.
          await expect
            .poll(async () => (await rival.query(waiting[name === 'MySQL' ? 'mysql' : 'mariadb']))[0], {
              interval: 1_000,
            })
            .not.toEqual([]);
          const handled = settles(claim);
          await insertRows(first);
          expect([await handled, await transaction.count(id)]).toEqual([false, 0]);
          await expectNext(id);
        },
      );
    }

    test.concurrent(
      `a handler of ${library} that ends its transaction by its library is handled with its write, or not at all`,
      async ({ expect, onTestFinished }) => {
        const { ends = {}, store, transaction, expectNext } = await prepare(onTestFinished);
        for (const [way, end] of Object.entries(ends)) {
          const id = randomUUID();
          const claim = await claimFree(store, {}, id);
          await transaction.write(claim.tx, id);
          const isRefused = await Promise.resolve(end(claim.tx as never)).then(
            () => false,
            (error: unknown) => (error as { code?: string }).code === 'TRANSACTION_CONTROL',
          );
          // A nested transaction is the handler's own.
          expect([way, isRefused]).toEqual([way, !way.startsWith('start')]);
          expect([way, await settles(claim), await transaction.count(id)]).toEqual([way, true, 1]);
          const left = randomUUID();
          const failing = await claimFree(store, {}, left);
          await transaction.write(failing.tx, left);
          await Promise.resolve(end(failing.tx as never)).catch(ignore);
          await failing.release();
          expect([way, await transaction.count(left)]).toEqual([way, 0]);
          await expectNext(left);
        }
      },
    );
  }

  // MariaDB shows no other session's variables.
  if (name !== 'MySQL') return;

  test('after handlers that succeed, fail and end their transaction the connections of every library are as before', async ({
    onTestFinished,
  }) => {
    const admin = await createConnection(server.url);
    onTestFinished(() => admin.end());
    const select = async (sql: string): Promise<unknown> => (await admin.query<RowDataPacket[]>(sql))[0];
    for (const { name: library, prepare } of librariesOn(dialect, server)) {
      const { store, transaction, ends = {} } = await prepare(onTestFinished);
      for (const end of [ignore, ...Object.values(ends)]) {
        for (const finish of ['settle', 'release'] as const) {
          const claim = await claimFree(store, {}, randomUUID());
          await transaction.write(claim.tx, randomUUID());
          await Promise.resolve(end(claim.tx as never)).catch(ignore);
          await claim[finish]().catch(ignore);
        }
      }
      // InnoDB would refresh nothing for a test that reads every 50 ms.
      const found = async () => [library, await select(sessions), await select(locks)];
      const restored = [library, [{ autocommit: 'ON', isOwnTimeout: 1 }], [{ locks: 0, transactions: 0 }]];
      await expect.poll(found, { interval: 1_000 }).toEqual(restored);
    }
  });
});
