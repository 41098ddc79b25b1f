import { expect, test } from 'vitest';
import { findAnchors, findLinks, findPage, isThere, listFiles, pages, readText } from './pages.js';

const links = pages.flatMap(findLinks);

test('every file, folder and picture that a page links to exists', () => {
  expect(links.length).toBeGreaterThan(80);
  expect(links.filter(({ path }) => !isThere(path))).toEqual([]);
});

test('every section that a page links to exists', () => {
  const anchors = new Map(pages.map((page) => [page.path, findAnchors(page)]));
  const broken = links.filter(
    ({ path, anchor }) => anchor !== undefined && anchors.get(path)?.includes(anchor) === false,
  );
  expect(broken).toEqual([]);
});

test('another page links to every page, or names one that is not in the package', () => {
  const linked = new Set(links.filter(({ from, path }) => from !== path).map(({ path }) => path));
  const named = (path: string) => pages.some((page) => page.path !== path && page.text.includes(path));
  const isUnpacked = (path: string) => path === 'CONTRIBUTING.md' || path.startsWith('sandbox/');
  const found = (path: string) => path === 'README.md' || linked.has(path) || (isUnpacked(path) && named(path));
  expect(pages.map(({ path }) => path).filter((path) => !found(path))).toEqual([]);
});

test('every picture is shown or named on a page, in its light form or both', () => {
  const shown = new Set(links.map(({ path }) => path));
  const isNamed = (path: string) => pages.some(({ text }) => text.includes(path.replace('-dark.', '-light.')));
  const pictures = ['.png', '.svg'].flatMap((extension) => listFiles('docs/images', extension));
  expect(pictures.length).toBeGreaterThan(0);
  expect(pictures.filter((path) => !shown.has(path) && !isNamed(path))).toEqual([]);
});

test('every section of docs/service.md that code, a test or a page cites exists', () => {
  const sections = [...findPage('docs/service.md').text.matchAll(/^#{2,3} §(\d+(?:\.\d+)?) /gm)].map(
    ([, each]) => each,
  );
  const sources = ['src', 'test', 'examples', 'sandbox'].flatMap((folder) => listFiles(folder, '.ts'));
  const texts = [...sources.map((path) => ({ path, text: readText(path) })), ...pages];
  const cited = texts.flatMap(({ path, text }) =>
    [...text.matchAll(/§ ?(\d+(?:\.\d+)?)/g)].map(([, section]) => ({ path, section })),
  );
  expect(cited.length).toBeGreaterThan(80);
  expect(cited.filter(({ section }) => !sections.includes(section))).toEqual([]);
});
