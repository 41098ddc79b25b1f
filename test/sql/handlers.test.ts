// What handlers leave running and end through their library.
import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Claim } from 'transfer-callbacks';
import { later } from '../core/support.js';
import { claimFree, request } from '../stores/support.js';
import { databases } from './databases.js';
import { makeStore } from './factories.js';
import { libraries } from './libraries.js';

const ignore = (): void => undefined;

/** `SQL_DATABASES='PostgreSQL 18,MariaDB'` tries those alone. */
const chosen = process.env.SQL_DATABASES?.split(',');

/** Resolves with whether a claim was settled. */
function settles(claim: Claim<unknown>): Promise<boolean> {
  return claim.settle().then(
    () => true,
    () => false,
  );
}

const transactional = databases.filter(({ dialect }) => dialect !== 'sqlite');
for (const { name, dialect, start } of transactional.filter((each) => chosen?.includes(each.name) ?? true)) {
  describe(name, () => {
    let server: Awaited<ReturnType<typeof start>>;
    beforeAll(async () => {
      server = await start();
    });
    afterAll(() => server.stop());

    for (const library of libraries) {
      const open = library.open[dialect];
      if (open === undefined) continue;

      /** Opens the library with a store, and how to write through it. */
      const prepare = async (onTestFinished: (end: () => void) => void) => {
        const opened = await open(server.url, 2);
        onTestFinished(() => void opened.close());
        const store = makeStore(library, opened.client, dialect);
        await store.migrate();
        const transaction = opened.transaction ?? expect.fail('no transaction');
        /** Expects that the next delivery handles the callback, and that it is written once in the end. */
        const expectNext = async (id: string): Promise<void> => {
          const next = await claimFree(store, { token: 'the next' }, id);
          await transaction.write(next.tx, id);
          await next.settle();
          expect(await transaction.count(id)).toBe(1);
        };
        return { ...opened, store, transaction, expectNext };
      };

      test.concurrent(
        `what a nested transaction of a failed handler of ${library.name} would write later is not written`,
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
        `a handler of ${library.name} whose nested transaction lasts three times storeTimeoutMs is rolled back`,
        async ({ expect, onTestFinished }) => {
          const { nest, store, transaction, expectNext } = await prepare(onTestFinished);
          if (nest === undefined) return;
          const id = randomUUID();
          const timeoutMs = 400;
          const begun = later();
          const reply = await store.claim(id, { ...request, timeoutMs });
          const claim = reply.state === 'claimed' ? reply.claim : expect.fail(reply.state);
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

      test.concurrent(
        `a handler of ${library.name} that ends its transaction by its library is settled with its write, or not at all`,
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
            expect([way, isRefused]).toEqual([way, way !== 'startTransaction']);
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
  });
}
