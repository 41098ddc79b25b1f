import { join, posix } from 'node:path';
import ts from 'typescript';
import { expect, test } from 'vitest';
import { listNodes } from '../../scripts/entries.js';
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
  const calls = listNodes(path).filter(ts.isCallExpression);
  const groups = calls.filter(({ expression }) => /^(?:test|it|describe)\b/.test(expression.getText()));
  return groups.flatMap(({ arguments: [title] }) =>
    title !== undefined && ts.isStringLiteralLike(title) ? [toPattern(title.text)] : [],
  );
}

/** What a test fills in is `…` in the list of promises. */
function toPattern(title: string): string {
  return title.replaceAll(/%[sdijo]|\$[\w.]+/g, '…').replaceAll('’', "'");
}

interface Named {
  readonly title: string;
  readonly path: string;
}

/** The tests of each promise, by its heading. */
const promises = new Map(
  readText('test/promises.md')
    .split('\n## ')
    .slice(1)
    .map((section): [string, Named[]] => [section.slice(0, section.indexOf('\n')), findNamed(section)]),
);

function findNamed(section: string): Named[] {
  return [...section.matchAll(/^- \[(.+)\]\((\S+\.test\.ts)\)$/gm)].map(([, title = '', link = '']) => ({
    title: toPattern(title),
    path: posix.join('test', link),
  }));
}

test('each promise of docs/guarantees.md has its tests, and nothing else has', () => {
  const section = guarantees.text.split('\n## ').find((text) => text.startsWith('Promises\n')) ?? '';
  expect([...promises.keys()]).toEqual([...section.matchAll(/^### (.+)$/gm)].map(([, heading]) => heading));
});

test('every test of a promise exists, with its title', () => {
  const named = [...promises.values()].flat();
  expect(named.length).toBeGreaterThan(35);
  expect(named.filter(({ title, path }) => titles.get(path)?.includes(title) !== true)).toEqual([]);
});

test('`npm test` runs a test of every promise', () => {
  expect(promises.size).toBeGreaterThanOrEqual(12);
  const isLong = [...Object.values(longTests).flat(), ...weeklyTests].map(toRegExp);
  const untested = [...promises].filter(([, named]) =>
    named.every(({ path }) => isLong.some((pattern) => pattern.test(path))),
  );
  expect(untested.map(([promise]) => promise)).toEqual([]);
});

/** Returns the pattern of a glob with `*`, `**` and alternatives. */
function toRegExp(glob: string): RegExp {
  const alternatives = glob.replace(/\{([^}]*)\}/g, (_all, list: string) => `(?:${list.replaceAll(',', '|')})`);
  const stars = alternatives.replaceAll('**/', '(?:<any>/)?').replaceAll('*', '[^/]*').replaceAll('<any>', '.*');
  return new RegExp(`^${stars.replaceAll('.test.ts', '\\.test\\.ts')}$`);
}

test('every fault of docs/guarantees.md has a test that exists and that `.ci/run` runs, and nothing else has', () => {
  const listRows = (text = ''): string[] => text.match(/^\| (?!fault |---).*$/gm) ?? [];
  const tested = listRows(readText('test/promises.md').split('\n# Faults')[1]).map((row) => {
    const [, fault = '', path = ''] = /^\| (.*) \| `(\S+)` \|$/.exec(row) ?? expect.fail(`There is no test in ${row}`);
    return { fault, path };
  });
  const faults = listRows(guarantees.text.split('\n## Faults')[1]).map((row) => row.split(' | ')[0]?.slice(2));
  expect(faults.length).toBeGreaterThan(15);
  expect(tested.map(({ fault }) => fault)).toEqual(faults);
  for (const { path } of tested) {
    expect(isThere(path), join(root, path)).toBe(true);
    expect(
      weeklyTests.map(toRegExp).some((pattern) => pattern.test(path)),
      path,
    ).toBe(false);
  }
});
