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

test('the reference shows each type that a declaration names', () => {
  const exported = new Set(all.flatMap(({ addresses }) => [...addresses.keys()]));
  const sources = listFiles('src', '.ts').map(readText).join('\n');
  const types = new Set(findDeclared(sources));
  const hidden = all.flatMap(({ own }) =>
    own.flatMap(({ name, declaration }) => {
      const code = declaration.replace(/\/\*\*.*?\*\//gs, '');
      const shown = new Set(findDeclared(code));
      const named = code.match(/(?<=: |\| |& |<|extends |\()[A-Z]\w+(?=[\s;<>,)[\]|&])/g) ?? [];
      return named
        .filter((each) => types.has(each) && !exported.has(each) && !shown.has(each))
        .map((each) => `${name}: ${each}`);
    }),
  );
  expect(hidden).toEqual([]);
});

test('docs/api is what npm run api writes', () => {
  const pages = renderApi(all);
  const old = pages.filter(({ file, text }) => !isThere(`docs/api/${file}`) || readText(`docs/api/${file}`) !== text);
  expect(old.map(({ file }) => `docs/api/${file}: run npm run api`)).toEqual([]);
  expect(listFiles('docs/api', '.md').toSorted()).toEqual(pages.map(({ file }) => `docs/api/${file}`).toSorted());
});

function findDeclared(text: string): string[] {
  return [...text.matchAll(/^(?:export )?(?:interface|type|class) (\w+)/gm)].map(([, name = '']) => name);
}
