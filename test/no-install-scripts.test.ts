import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { createLinks, findBinaries } from './support/postgres-links.js';

const run = promisify(execFile);

async function readJson(file: string): Promise<unknown> {
  return JSON.parse(await readFile(new URL(`../${file}`, import.meta.url), 'utf8'));
}

test('package.json denies the install script of each package that has one', async () => {
  const { packages } = (await readJson('package-lock.json')) as {
    packages: Record<string, { hasInstallScript?: true }>;
  };
  const withScript = Object.keys(packages).filter((path) => packages[path]?.hasInstallScript);
  const names = new Set(
    withScript.map((path) => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)),
  );
  const { allowScripts } = (await readJson('package.json')) as { allowScripts: object };
  expect(allowScripts).toEqual(Object.fromEntries([...names].map((name) => [name, false])));
});

test.each([18, 15] as const)('PostgreSQL %s starts although npm has not run its install script', async (major) => {
  const copy = await mkdtemp(join(tmpdir(), 'transfer-callbacks-links-'));
  onTestFinished(() => rm(copy, { recursive: true }));
  await cp(findBinaries(major) ?? '', copy, { recursive: true, verbatimSymlinks: true });
  const list = await readFile(join(copy, 'native/pg-symlinks.json'), 'utf8');
  for (const { target } of JSON.parse(list) as { target: string }[]) await rm(join(copy, target), { force: true });
  const startServer = () => run(join(copy, 'native/bin/postgres'), ['--version']);
  await expect(startServer()).rejects.toThrow('postgres');

  await Promise.all([createLinks(copy), createLinks(copy)]);
  expect((await startServer()).stdout).toContain(`(PostgreSQL) ${major}.`);
  await createLinks(copy);
});
