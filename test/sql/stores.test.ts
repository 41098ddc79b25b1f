import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { storeContract } from 'transfer-callbacks/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { root } from '../docs/pages.js';
import { claimFree } from '../stores/support.js';
import { databases } from './databases.js';
import { makeStore } from './factories.js';
import { libraries } from './libraries.js';

for (const { name, dialect, start } of databases) {
  describe(name, () => {
    let server: Awaited<ReturnType<typeof start>>;
    beforeAll(async () => {
      server = await start();
    });
    afterAll(() => server.stop());

    for (const library of libraries) {
      const open = library.open[dialect];
      if (open === undefined) continue;
      // They wait most of the time, for leases. A contract holds up to 16 claims, in turn through its two pools.
      test.concurrent(
        `the store of ${library.name} keeps the contract`,
        async ({ expect, onTestFinished }) => {
          const [one, two] = await Promise.all([open(server.url, 14), open(server.url, 14)]);
          onTestFinished(async () => {
            await Promise.all([one.close(), two.close()]);
          });
          const [store, other] = [one, two].map(({ client }) => makeStore(library, client, dialect));
          if (store === undefined || other === undefined) throw new Error('no stores');
          await store.migrate();
          const failures: string[] = [];
          for (const { title, check } of storeContract) {
            await check(store, { other, transaction: one.transaction }).catch((error: unknown) => {
              failures.push(`${title}: ${String(error)}`);
            });
          }
          expect(failures).toEqual([]);
        },
        120_000,
      );
      if (dialect === 'sqlite') continue;
      test.concurrent(
        `of what a handler of ${library.name} leaves running nothing is written later, and no failure of it is acknowledged`,
        async ({ expect, onTestFinished }) => {
          const { client, transaction, close } = await open(server.url, 2);
          onTestFinished(() => void close());
          const store = makeStore(library, client, dialect);
          await store.migrate();
          const [failing, late] = [randomUUID(), randomUUID()];

          const first = await claimFree(store, {}, failing);
          await transaction?.write(first.tx, failing);
          transaction?.fail?.(first.tx).catch(() => undefined);
          const isSettled = await first.settle().then(
            () => true,
            () => false,
          );
          expect(await transaction?.count(failing)).toBe(isSettled ? 1 : 0);

          const second = await claimFree(store, {}, late);
          await transaction?.write(second.tx, late);
          const settled = second.settle();
          await expect(transaction?.write(second.tx, late)).rejects.toMatchObject({ code: 'TRANSACTION_CONTROL' });
          await settled;
          expect(await transaction?.count(late)).toBe(1);
        },
      );
    }
  });
}

test('every file of test/sql compiles', async () => {
  const compiler = join(root, 'node_modules/typescript/bin/tsc');
  const { stdout } = await promisify(execFile)(process.execPath, [compiler, '-p', 'test/sql'], { cwd: root }).catch(
    (error: unknown) => error as { stdout: string },
  );
  expect(stdout).toBe('');
});
