import { join, posix } from 'node:path';
import ts from 'typescript';
import { expect, test } from 'vitest';
import { longTests, weeklyTests } from '../../vitest.config.js';
import { findPage, isThere, listFiles, readText, root } from './pages.js';

const guarantees = findPage('docs/guarantees.md');
const testFiles = [
  ...listFiles('test', '.test.ts'),
  ...listFiles('sandbox/test', '.test.ts'),
  ...listFiles('examples', '.test.ts'),
];
const titles = new Map(testFiles.map((path) => [path, findTitles(path)]));

/** Returns the titles in a test file, of tests and of groups of tests. */
function findTitles(path: string): string[] {
  const source = ts.createSourceFile(path, readText(path), ts.ScriptTarget.ES2022, true);
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node) && /^(?:test|it|describe)\b/.test(node.expression.getText())) {
      const [title] = node.arguments;
      if (title !== undefined && ts.isStringLiteralLike(title)) found.push(toPattern(title.text));
    }
    node.forEachChild(visit);
  };
  visit(source);
  return found;
}

/** What a test fills in is `…` in the document. */
function toPattern(title: string): string {
  return title.replaceAll(/%[sdijo]|\$[\w.]+/g, '…').replaceAll('’', "'");
}

interface Named {
  readonly title: string;
  readonly path: string;
}

const named = [...guarantees.text.matchAll(/^- \[(.+)\]\((\S+\.ts)\)$/gm)].map(([, title = '', link = '']): Named => ({
  title: toPattern(title),
  path: posix.join('docs', link),
}));

test('every test that docs/guarantees.md names exists, with its title', () => {
  expect(named.length).toBeGreaterThan(35);
  expect(named.filter(({ title, path }) => titles.get(path)?.includes(title) !== true)).toEqual([]);
});

test('`npm test` runs a test of every promise', () => {
  const promises = guarantees.text.split('\n## ')[1]?.split('\n### ').slice(1) ?? [];
  expect(promises.length).toBeGreaterThanOrEqual(12);
  const isLong = [...Object.values(longTests).flat(), ...weeklyTests].map(toRegExp);
  const untested = promises.filter((promise) => {
    const paths = [...promise.matchAll(/\]\(\.\.\/(\S+\.test\.ts)\)/g)].map(([, path = '']) => path);
    return paths.every((path) => isLong.some((pattern) => pattern.test(path)));
  });
  expect(untested.map((promise) => promise.split('\n')[0])).toEqual([]);
});

/** Returns the pattern of a glob with `*`, `**` and alternatives. */
function toRegExp(glob: string): RegExp {
  const alternatives = glob.replace(/\{([^}]*)\}/g, (_all, list: string) => `(?:${list.replaceAll(',', '|')})`);
  const stars = alternatives.replaceAll('**/', '(?:<any>/)?').replaceAll('*', '[^/]*').replaceAll('<any>', '.*');
  return new RegExp(`^${stars.replaceAll('.test.ts', '\\.test\\.ts')}$`);
}

test('every fault leads to a test that exists and that `.ci/run` runs', () => {
  const faults = guarantees.text.split('\n## Faults')[1]?.match(/^\| (?!fault |---).*$/gm) ?? [];
  expect(faults.length).toBeGreaterThan(15);
  for (const row of faults) {
    const [, path = ''] = /^\| \[.+?\]\(\.\.\/(\S+)\) \|/.exec(row) ?? expect.fail(`There is no test in ${row}`);
    expect(isThere(path), join(root, path)).toBe(true);
    expect(
      weeklyTests.map(toRegExp).some((pattern) => pattern.test(path)),
      path,
    ).toBe(false);
  }
});
