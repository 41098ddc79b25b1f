import { expect, test } from 'vitest';
import { findAnchors, findLinks, isThere, listFiles, pages } from './pages.js';

const links = pages.flatMap(findLinks);

test('the pages link to each other', () => {
  expect(links.length).toBeGreaterThan(80);
});

test('every file, folder and picture that a page links to exists', () => {
  expect(links.filter(({ path }) => !isThere(path))).toEqual([]);
});

test('every section that a page links to exists', () => {
  const anchors = new Map(pages.map((page) => [page.path, findAnchors(page)]));
  const broken = links.filter(
    ({ path, anchor }) => anchor !== undefined && anchors.get(path)?.includes(anchor) === false,
  );
  expect(broken).toEqual([]);
});

test('every page is linked to from another one', () => {
  const linked = new Set(links.filter(({ from, path }) => from !== path).map(({ path }) => path));
  expect(pages.map(({ path }) => path).filter((path) => path !== 'README.md' && !linked.has(path))).toEqual([]);
});

test('every picture is shown on a page', () => {
  const shown = new Set(links.map(({ path }) => path));
  const pictures = ['.png', '.svg'].flatMap((extension) => listFiles('docs/images', extension));
  expect(pictures.length).toBeGreaterThan(0);
  expect(pictures.filter((path) => !shown.has(path))).toEqual([]);
});
