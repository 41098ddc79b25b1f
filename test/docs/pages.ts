import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { compileFunction } from 'node:vm';
import { expect } from 'vitest';

/** The root of the repository, with a slash at its end. */
export const root = fileURLToPath(new URL('../..', import.meta.url));

/** A Markdown file of the repository. */
export interface Page {
  /** Its path from the root, such as `docs/stores.md`. */
  readonly path: string;
  readonly text: string;
}

/** A fenced block of a page. */
export interface Block {
  /** Where it is, such as `docs/stores.md:31`. */
  readonly at: string;
  readonly code: string;
}

export const readText = (path: string): string => readFileSync(join(root, path), 'utf8');
export const isThere = (path: string): boolean => existsSync(join(root, path));

/** Returns the paths of the files below a folder that end in `extension`, from the root. */
export function listFiles(folder: string, extension: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith(extension) && !/node_modules|\bdist\b/.test(path))
    .map((path) => `${folder}/${path}`);
}

/**
 * README, that of the sandbox, CONTRIBUTING, SECURITY, the list of examples, the text for coding agents and all of
 * `docs`.
 */
export const pages: readonly Page[] = [
  ...['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'examples/README.md', 'sandbox/README.md'].filter(isThere),
  ...listFiles('skills', '.md'),
  ...listFiles('docs', '.md'),
].map((path) => ({ path, text: readText(path) }));

export function findPage(path: string): Page {
  return pages.find((page) => page.path === path) ?? expect.fail(`There is no page ${path}.`);
}

/** Returns the page without its fenced blocks, in which a heading or a link is none. */
export function withoutBlocks({ text }: Page): string {
  return text.replace(/^```.*?^```$/gms, '');
}

/** Returns the fenced blocks of a language, in their order. */
export function findBlocks({ path, text }: Page, language: string): Block[] {
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'))].map((match) => ({
    at: `${path}:${text.slice(0, match.index).split('\n').length}`,
    code: match[1] ?? '',
  }));
}

/** Runs a block with the modules that `load` returns and what else it takes. Resolves with what it exports. */
export async function runBlock<Exports>({ code }: Block, load: (name: string) => unknown, given: object) {
  const { default: ts } = await import('typescript'); // Most files that import this one run no block.
  const { outputText } = ts.transpileModule(code, {
    compilerOptions: { module: ts.ModuleKind.CommonJS, esModuleInterop: true },
  });
  const exports = {};
  const names = ['require', 'exports', ...Object.keys(given)];
  const run = compileFunction(`return (async () => {${outputText}})()`, names);
  await Reflect.apply(run, undefined, [load, exports, ...(Object.values(given) as unknown[])]);
  return exports as Exports;
}

/** Returns the rows of the table whose header starts with the cell `first`, as lists of cells. */
export function findTable({ path, text }: Page, first: string): string[][] {
  const lines = text.split('\n');
  const start = lines.findIndex((line) => line.startsWith(`| ${first} |`));
  if (start === -1) expect.fail(`${path} has no table that starts with \`${first}\`.`);
  const rows = lines.slice(start + 2);
  return rows.slice(0, rows.indexOf('')).map((row) =>
    row
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

/** Returns the names in backticks in a cell. */
export const findNames = (cell = ''): string[] => [...cell.matchAll(/`([\w.]+)`/g)].map(([, name = '']) => name);

/** Reads a number as the documents write it: `15 000`. */
export const toNumber = (cell = ''): number => (/^[\d ]+$/.test(cell) ? Number(cell.replaceAll(' ', '')) : NaN);

/** Returns the anchors of a page's headings, as GitHub makes them: numbered where two would be the same. */
export function findAnchors(page: Page): string[] {
  const counts = new Map<string, number>();
  return [...withoutBlocks(page).matchAll(/^#{1,6} (.*)$/gm)].map(([, title = '']) => {
    const anchor = title
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-');
    const count = counts.get(anchor) ?? 0;
    counts.set(anchor, count + 1);
    return count === 0 ? anchor : `${anchor}-${count}`;
  });
}

/** A link of a page into the repository. */
export interface Link {
  readonly from: string;
  /** What it leads to, from the root. */
  readonly path: string;
  readonly anchor: string | undefined;
}

/** Returns the links and pictures of a page that lead into the repository. */
export function findLinks(page: Page): Link[] {
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
