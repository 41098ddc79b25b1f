import { beforeAll, expect, test } from 'vitest';
import { readExports, renderApi, type EntryExports } from '../../scripts/api-pages.js';
import { isThere, listFiles, readText } from './pages.js';

// Compiles the package: on a busy machine that takes a while.
let all: EntryExports[];
beforeAll(async () => {
  all = await readExports();
}, 300_000);

test('every export of every entry has a doc comment that is a sentence', () => {
  const undocumented = all.flatMap(({ entry, own }) =>
    own.filter(({ doc }) => !/[.:]$/m.test(doc)).map(({ name }) => `${entry.name}: ${name}`),
  );
  expect(undocumented).toEqual([]);
});

test('docs/api is what npm run api writes', () => {
  const pages = renderApi(all);
  const old = pages.filter(({ file, text }) => !isThere(`docs/api/${file}`) || readText(`docs/api/${file}`) !== text);
  expect(old.map(({ file }) => `docs/api/${file}: run npm run api`)).toEqual([]);
  expect(listFiles('docs/api', '.md').toSorted()).toEqual(pages.map(({ file }) => `docs/api/${file}`).toSorted());
});
