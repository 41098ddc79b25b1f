import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { databases } from './databases.js';
import { libraries } from './libraries.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

for (const { name, dialect, start } of databases) {
  describe(name, () => {
    let database: Awaited<ReturnType<typeof start>>;
    beforeAll(async () => {
      database = await start();
    });
    afterAll(() => database.stop());

    for (const library of libraries) {
      const open = library.open[dialect];
      if (open === undefined) continue;
      test(`${library.name} reaches it`, async () => {
        const { transaction, close } = await open(database.url, 2);
        expect((await transaction?.count('nobody')) ?? 0).toBe(0);
        await close();
      });
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
