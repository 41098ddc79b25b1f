import { posix } from 'node:path';
import ts from 'typescript';
import { expect, test } from 'vitest';
import { isThere, listFiles, readText } from './pages.js';

/** Returns the files of the repository that a file imports, for their types or otherwise. */
function findImports(path: string): string[] {
  return ts
    .preProcessFile(readText(path), true, true)
    .importedFiles.filter(({ fileName }) => fileName.startsWith('.'))
    .map(({ fileName }) => posix.join(posix.dirname(path), fileName))
    .map((target) => (isThere(target) ? target : target.replace(/js$/, 'ts')));
}

/** Finds the circles that a depth-first walk runs into: at least one, if there is any. */
function findCircles(imports: ReadonlyMap<string, readonly string[]>): string[] {
  const circles: string[] = [];
  const done = new Set<string>();
  const visit = (path: string, way: readonly string[]): void => {
    if (way.includes(path)) circles.push([...way.slice(way.indexOf(path)), path].join(' → '));
    if (done.has(path)) return;
    done.add(path);
    for (const next of imports.get(path) ?? []) visit(next, [...way, path]);
  };
  for (const path of imports.keys()) visit(path, []);
  return circles;
}

test('a circle is found, of any length', () => {
  const imports = { a: ['b', 'c'], b: ['c'], c: ['d'], d: ['b'], e: ['e'] };
  expect(findCircles(new Map(Object.entries(imports)))).toEqual(['b → c → d → b', 'e → e']);
});

test('no files import each other in a circle', () => {
  const files = ['src', 'test'].flatMap((folder) => ['.ts', '.js'].flatMap((end) => listFiles(folder, end)));
  const imports = new Map(files.map((path) => [path, findImports(path)]));
  expect([...imports.values()].flat().length).toBeGreaterThan(500);
  expect(findCircles(imports)).toEqual([]);
});
