import { posix } from 'node:path';
import { expect, test } from 'vitest';
import { findAnchors, isThere, listFiles, pages, withoutBlocks, type Page } from './pages.js';

interface Link {
  readonly from: string;
  /** What it leads to, from the root. */
  readonly path: string;
  readonly anchor: string | undefined;
}

/** Returns the links and pictures of a page that lead into the repository. */
function findLinks(page: Page): Link[] {
  const text = withoutBlocks(page).replace(/`[^`\n]*`/g, '');
  const targets = [
    ...[...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target),
    ...[...text.matchAll(/\b(?:src|srcset|href)="([^"]+)"/g)].map(([, target = '']) => target),
  ];
  return targets
    .filter((target) => !/^[a-z]+:/.test(target))
    .map((target) => {
      const [path = '', anchor] = target.split('#');
      const to = path === '' ? page.path : posix.join(posix.dirname(page.path), path);
      return { from: page.path, path: to, anchor };
    });
}

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
