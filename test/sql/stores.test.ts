import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { storeContract, transferSucceeded } from 'transfer-callbacks/testing';
import { expect, test } from 'vitest';
import { receiverOf } from '../core/support.js';
import { root } from '../docs/pages.js';
import { containing } from '../support/helpers/containing.js';
import { claimFree, request, settles } from '../stores/support.js';
import { startLossyProxy } from '../support/servers/lossy-proxy.js';
import { databases } from './databases.js';
import { describeDatabases, librariesOn } from './libraries.js';
import { makeStore } from './factories.js';

const ignore = (): void => undefined;

/** Those of a fresh callback, beside those of the handler, and of a duplicate. */
function countExpectedTrips(database: string, library: string) {
  if (library === 'pg' || library === '@neondatabase/serverless') return { fresh: 2, duplicate: 2 };
  if (database.startsWith('PostgreSQL')) return { fresh: 4, duplicate: 3 };
  // It begins with its first statement, and commits by its last one.
  if (library === 'mysql2') return { fresh: 4, duplicate: 4 };
  // The adapter of Prisma 7 prepares each statement first, unless it is told to use the text protocol.
  if (database === 'MySQL' && library === 'Prisma 7') return { fresh: 10, duplicate: 9 };
  return { fresh: 6, duplicate: 5 };
}

describeDatabases(databases, ({ name, dialect }, server) => {
  for (const { name: library, open, prepare } of librariesOn(dialect, server)) {
    // They wait most of the time, for leases. A contract holds up to 16 claims, in turn through its two pools.
    test.concurrent(
      `the store of ${library} keeps the contract`,
      async ({ expect, onTestFinished }) => {
        const [one, other] = await Promise.all([prepare(onTestFinished, 14), prepare(onTestFinished, 14)]);
        const failures: string[] = [];
        for (const { title, check } of storeContract) {
          await check(one.store, { other: other.store, transaction: one.transaction }).catch((error: unknown) => {
            failures.push(`${title}: ${String(error)}`);
          });
        }
        expect(failures).toEqual([]);
      },
      120_000,
    );
    test.concurrent(
      `each call of the store of ${library} rejects with an error that names the missing table and the code to write`,
      async ({ expect, onTestFinished }) => {
        const { client, close } = await open(server.url, 2);
        onTestFinished(() => void close());
        const table = `missing_${randomUUID().slice(0, 8)}`;
        const store = makeStore({ name: library }, client, dialect, { table });
        // With all libraries at once, a busy machine takes longer than the usual time.
        const receiver = receiverOf({ store, storeTimeoutMs: 9_000, leaseMs: 29_000 });
        const error = {
          code: 'NO_TABLE',
          message: containing(`${table}\` does not exist. Call \`await store.migrate()\` when the app starts`),
          cause: expect.any(Error) as Error,
        };
        const named = expect.objectContaining(error) as Error;
        const callback = transferSucceeded();
        expect(await receiver.receive(callback)).toMatchObject({ outcome: 'store_unavailable', error: named });
        expect(await receiver.check()).toMatchObject({ ok: false, error: named });
        const { id } = callback.data;
        await expect(store.read(id)).rejects.toMatchObject(error);
        await expect(store.forget(id, '')).rejects.toMatchObject(error);
        await expect(store.prune({ olderThanMs: 90_001 })).rejects.toMatchObject(error);
        await store.migrate();
        expect((await receiver.receive(callback)).outcome).toBe('processed');
      },
    );
    if (dialect === 'sqlite') continue;
    test.concurrent(
      `a pool of one connection of ${library} makes a store, and a transaction on it does not`,
      async ({ expect, onTestFinished }) => {
        const { store } = await prepare(onTestFinished, 1);
        const claim = await claimFree(store);
        onTestFinished(() => claim.release());
        expect(() => makeStore({ name: library }, claim.tx, dialect)).toThrow(
          expect.objectContaining({ code: 'INVALID_ARGUMENT', message: containing('Write `') }),
        );
      },
    );
    test.concurrent(
      `a handler of ${library} that leaves a failing statement running is handled with its write, or not at all`,
      async ({ expect, onTestFinished }) => {
        const { store, transaction } = await prepare(onTestFinished);
        const id = randomUUID();
        const claim = await claimFree(store, {}, id);
        await transaction.write(claim.tx, id);
        transaction.fail?.(claim.tx).catch(ignore);
        const isHandled = await settles(claim);
        expect(await transaction.count(id)).toBe(isHandled ? 1 : 0);
      },
    );
    test.concurrent(
      `of a handler of ${library} that leaves a call of several steps running the writes are there if it is handled`,
      async ({ expect, onTestFinished }) => {
        const { store, transaction, leave } = await prepare(onTestFinished);
        for (let round = 0; leave !== undefined && round < 100; round += 1) {
          const id = randomUUID();
          const claim = await claimFree(store, {}, id);
          await transaction.write(claim.tx, id);
          leave(claim.tx as never).then(ignore, ignore);
          // The steps meet the end of the transaction at different places.
          const until = performance.now() + (round % 20) / 5;
          while (performance.now() < until) await new Promise(setImmediate);
          const isHandled = await settles(claim);
          expect([round, await transaction.count(id)]).toEqual([round, isHandled ? 1 : 0]);
        }
      },
    );
    test.concurrent(
      `the round trips of the store of ${library} are those of docs/logs-and-metrics.md`,
      async ({ expect, onTestFinished }) => {
        const url = new URL(server.url);
        const proxy = await startLossyProxy(Number(url.port));
        url.port = String(proxy.port);
        onTestFinished(() => proxy.close());
        const { store } = await prepare(onTestFinished, 1, url.href);
        const countTrips = async (work: () => Promise<unknown>): Promise<number> => {
          // On the only connection: what has been left to the background has ended.
          await store.read('nothing');
          const before = proxy.roundTrips();
          await work();
          return proxy.roundTrips() - before;
        };
        const id = randomUUID();
        const trips = {
          fresh: await countTrips(async () => (await claimFree(store, {}, id)).settle()),
          duplicate: await countTrips(() => store.claim(id, { ...request, token: 'another' })),
        };
        expect(trips).toEqual(countExpectedTrips(name, library));
      },
    );
  }
});

test('every file of test/sql compiles', { timeout: 300_000 }, async () => {
  const compiler = join(root, 'node_modules/typescript/bin/tsc');
  const { stdout } = await promisify(execFile)(process.execPath, [compiler, '-p', 'test/sql'], { cwd: root }).catch(
    (error: unknown) => error as { stdout: string },
  );
  expect(stdout).toBe('');
});
