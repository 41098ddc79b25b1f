import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';

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
