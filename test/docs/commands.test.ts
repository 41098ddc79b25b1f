import { expect, test } from 'vitest';
import { run } from '../cli/support.js';
import { findBlocks, isThere, pages, readText } from './pages.js';

const { scripts } = JSON.parse(readText('package.json')) as { scripts: Record<string, string> };
const shown = pages.flatMap((page) =>
  ['sh', 'text'].flatMap((language) => findBlocks(page, language)).flatMap(({ code }) => code.split('\n')),
);

/** The command lines of the documents that begin with `npx transfer-callbacks`, by command. */
const commands = new Map<string, string[]>();
for (const line of shown) {
  const [, command, rest = ''] = /^(?:\$ )?npx transfer-callbacks (\w+)(.*)/.exec(line) ?? [];
  if (command !== undefined) commands.set(command, [...(commands.get(command) ?? []), rest.replace(/ #.*/, '')]);
}
commands.delete('help');

test('the documents show the commands', () => {
  expect([...commands.keys()]).toEqual(expect.arrayContaining(['sandbox', 'trigger', 'reconcile']));
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
