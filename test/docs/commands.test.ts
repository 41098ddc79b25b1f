import { expect, test } from 'vitest';
import { run, runSandboxCli } from '../cli/support.js';
import { findBlocks, isThere, pages, readText } from './pages.js';

const lines = pages.flatMap((page) =>
  ['sh', 'text'].flatMap((language) => findBlocks(page, language)).flatMap(({ code }) => code.split('\n')),
);

/** The options that the documents show, by command. */
const shown = new Map<string, Set<string>>();
for (const line of lines) {
  const [, command, rest = ''] = /npx (?:--no )?(transfer-(?:callbacks|sandbox) \w+)([^#|]*)/.exec(line) ?? [];
  if (command === undefined || command.endsWith(' help')) continue;
  const options = shown.get(command) ?? new Set();
  for (const option of rest.match(/--[\w-]+/g) ?? []) options.add(option);
  shown.set(command, options);
}

test.each([...shown])('every option that the documents show with %s is in its help', async (command, options) => {
  const [program, name = ''] = command.split(' ');
  const { code, out } = await (program === 'transfer-sandbox' ? runSandboxCli : run)('help', name);
  expect(code).toBe(0);
  expect([...options].filter((option) => !out.includes(`${option} `))).toEqual([]);
});

test('every npm script and every test that the documents run exists', () => {
  expect([...shown.keys()]).toContain('transfer-sandbox trigger');
  const { scripts } = JSON.parse(readText('package.json')) as { scripts: Record<string, string> };
  const text = pages.map((page) => page.text).join('\n');
  const names = [...text.matchAll(/\bnpm run ([\w-]+)/g)].map(([, name = '']) => name);
  expect(names.filter((name) => scripts[name] === undefined)).toEqual([]);
  const files = [...text.matchAll(/\bvitest run (test\/[\w./-]+)/g)].map(([, path = '']) => path);
  expect(files.filter((path) => !isThere(path))).toEqual([]);
});
