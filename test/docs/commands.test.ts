import { expect, test } from 'vitest';
import { run } from '../cli/support.js';
import { findBlocks, findPage, isThere, pages, readText } from './pages.js';

interface Manifest {
  readonly name: string;
  readonly bin: Record<string, string>;
  readonly scripts: Record<string, string>;
}

const { name: packageName, bin, scripts } = JSON.parse(readText('package.json')) as Manifest;
const shown = pages.flatMap((page) =>
  ['sh', 'text'].flatMap((language) => findBlocks(page, language)).flatMap(({ code }) => code.split('\n')),
);

/** The command lines of the documents that begin with npx, by command. */
const commands = new Map<string, string[]>();
for (const line of shown) {
  const [, command, rest = ''] = /^(?:\$ |kubectl .* )?npx (?:--no )?transfer-callbacks (\w+)(.*)/.exec(line) ?? [];
  if (command !== undefined) commands.set(command, [...(commands.get(command) ?? []), rest.replace(/ #.*/, '')]);
}
commands.delete('help');

test('the documents show the commands', () => {
  expect([...commands.keys()]).toEqual(expect.arrayContaining(['sandbox', 'trigger', 'reconcile']));
});

test.each(['docs/operations.md', 'docs/reconciliation.md'])(
  '%s, which people follow where the secrets are, lets npx install nothing',
  (path) => {
    const { text } = findPage(path);
    expect(text).toContain(`npx --no ${packageName} `);
    expect(text).not.toContain(`npx ${packageName}`);
  },
);

test('docs/operations.md shows the command line without npx, at its path in the package', () => {
  const path = `node_modules/${packageName}/${String(bin[packageName])}`;
  expect(findPage('docs/operations.md').text).toContain(`node ${path} inspect`);
});

test.each([...commands])(
  'every option that the documents show with %s is in its help',
  async (command, lines) => {
    const { code, out } = await run('help', command);
    expect(code).toBe(0);
    const options = new Set(lines.flatMap((line) => line.match(/--[\w-]+/g) ?? []));
    expect([...options].filter((option) => !out.includes(`${option} `))).toEqual([]);
  },
  120_000,
);

test('every npm script and every file that the documents run exists', () => {
  const text = pages.map((page) => page.text).join('\n');
  const names = new Set([...text.matchAll(/\bnpm run ([\w-]+)/g)].map(([, name = '']) => name));
  expect([...names].filter((name) => scripts[name] === undefined)).toEqual([]);
  const files = new Set([...text.matchAll(/\bvitest run (test\/[\w./-]+)/g)].map(([, path = '']) => path));
  expect([...files].filter((path) => !isThere(path))).toEqual([]);
});
