import { expect, test } from 'vitest';
import { attemptsPerCallback, firstRetryMs } from '../../src/core/service.js';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { findNames, findPage, findTable, isThere, listFiles, pages, readText } from './pages.js';

const service = findPage('docs/service.md');
const sections = [...service.text.matchAll(/^#{2,3} §(\d+(?:\.\d+)?) /gm)].map(([, section = '']) => section);
const sources = ['src', 'test', 'examples', 'bench'].flatMap((folder) =>
  ['.ts', '.mjs'].flatMap((extension) => listFiles(folder, extension)),
);
const texts = [...sources, ...['CHANGELOG.md', 'bench/README.md'].filter(isThere)].map((path) => ({
  path,
  text: readText(path),
}));

test('the sections of docs/service.md are numbered in order, each once', () => {
  const order = (section: string): number => section.split('.').reduce((sum, part) => sum * 100 + Number(part), 0);
  const chapters = sections.filter((section) => !section.includes('.'));
  expect(chapters).toEqual(chapters.map((_chapter, index) => String(index + 1)));
  for (const chapter of chapters) {
    const own = sections.filter((section) => section.startsWith(`${chapter}.`)).map(order);
    expect(own, `§${chapter}`).toEqual(own.map((_section, index) => Number(chapter) * 100 + index + 1));
  }
});

test('every section that code, tests or documents cite is in docs/service.md', () => {
  const cited = [...texts, ...pages].flatMap(({ path, text }) =>
    [...text.matchAll(/§ ?(\d+(?:\.\d+)?)/g)].map(([, section = '']) => ({ path, section })),
  );
  expect(cited.length).toBeGreaterThan(80);
  expect(cited.filter(({ section }) => !sections.includes(section))).toEqual([]);
});

test('the documented fields are those of the fixtures, and so of the schema', () => {
  const fields = findTable(service, 'field').map(([name]) => findNames(name)[0]);
  expect(fields.toSorted()).toEqual(Object.keys(transferSucceeded().data).toSorted());
});

test('the numbers of the code are the documented ones', () => {
  const retries = service.text.split('### §6.3')[1]?.split('###')[0] ?? '';
  expect(retries).toContain(`up to ${attemptsPerCallback} attempts`);
  expect(retries.replaceAll('\n', ' ')).toContain(`about ${firstRetryMs / 1_000} seconds after the first attempt`);
});
