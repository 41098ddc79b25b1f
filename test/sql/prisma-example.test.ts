import { execFile } from 'node:child_process';
import { copyFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { removeTemporary } from '../support/programs/child.js';
import { startPostgres, type PostgresServer } from '../support/servers/postgres.js';
import { makeFolder } from '../support/servers/server.js';
import { readText, root } from '../docs/pages.js';

const run = promisify(execFile);
const modules = fileURLToPath(new URL('node_modules', import.meta.url));
const schema = readText('examples/prisma/schema.prisma');

let folder: string;
let server: PostgresServer;

// A copy, so that nothing is generated into the repository.
beforeAll(async () => {
  server = await startPostgres(18);
  folder = await makeFolder();
  await symlink(modules, join(folder, 'node_modules'));
  for (const file of ['package.json', 'old-code.ts', 'prisma.ts', 'schema.prisma']) {
    await copyFile(join(root, 'examples/prisma', file), join(folder, file));
  }
  const config = { extends: join(root, 'tsconfig.json'), include: ['*.ts'], exclude: [] };
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(config));
  await run(process.execPath, [join(modules, 'prisma/build/index.js'), 'generate'], {
    cwd: folder,
    // Prisma would download the engine of its migrations, which the example does not need.
    env: { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath },
  });
}, 300_000);

afterAll(async () => {
  await server.stop();
  await removeTemporary(folder);
});

async function runExample(file = 'prisma.ts'): Promise<string> {
  const tsx = join(root, 'node_modules/tsx/dist/loader.mjs');
  const { stdout } = await run(process.execPath, ['--import', tsx, file], {
    cwd: folder,
    env: { ...process.env, DATABASE_URL: server.url },
  });
  return stdout;
}

describe('examples/prisma', () => {
  test('the examples compile', async () => {
    const compiler = join(root, 'node_modules/typescript/bin/tsc');
    const { stdout } = await run(process.execPath, [compiler, '-p', folder]).catch(
      (error: unknown) => error as { stdout: string },
    );
    expect(stdout).toBe('');
  }, 300_000);

  test('the example books a callback that comes twice once, and exits, in repeated runs', async () => {
    for (let runs = 0; runs < 2; runs += 1) {
      const stdout = await runExample();
      expect(stdout).toMatch(/^The first delivery: processed\nThe second delivery: duplicate\n\[\n {2}\{\n/);
      expect(stdout.match(/status: 'SUCCESS'/g)).toHaveLength(1);
    }
  });

  test('old code without `tx` books in the transaction of its handler, with fewer connections than callbacks', async () => {
    expect(await runExample('old-code.ts')).toBe('20 of 20 processed, and booked:\n20\n');
  });

  test('the model has the columns of the table', async () => {
    await runExample();
    const { rows } = await server.pool().query<{ name: string; type: string; optional: string }>(
      `SELECT column_name AS name, data_type AS type, CASE is_nullable WHEN 'YES' THEN '?' ELSE '' END AS optional
         FROM information_schema.columns WHERE table_name = 'transfer_callbacks' ORDER BY ordinal_position`,
    );
    expect(findColumns(schema)).toEqual(rows.map(({ name, type, optional }) => `${name} ${type}${optional}`));
  });
});

const types: Readonly<Record<string, string>> = { String: 'text', BigInt: 'bigint' };

/** Returns the columns of the model of the store's table, as `name type`, with `?` if it may be null. */
function findColumns(text: string): string[] {
  const [, model = ''] = /^model TransferCallbackRecord \{\n(.*?)\n\n/ms.exec(text) ?? [];
  return model.split('\n').map((line) => {
    const [, name = '', type = '', optional = ''] = /^ *(\w+) +(\w+)(\??)/.exec(line) ?? [];
    return `${/@map\("(\w+)"\)/.exec(line)?.[1] ?? name} ${types[type]}${optional}`;
  });
}
