// The names, commands and options that documents and comments give, compared with those of the code.
import { expect, test } from 'vitest';
import { runInProcess as run, runSandboxInProcess } from '../cli/in-process.js';
import { findBlocks, isThere, listFiles, pages, readText, withoutBlocks } from './pages.js';

/** Names of the libraries, servers and hosts that the documents and comments speak of. */
const ofOthers = new Set([
  'asyncHandler',
  'createSecureServer',
  'onModuleInit',
  'requestHook',
  'requestTimeout',
  'preStop',
  'forceFlush',
  'terminationGracePeriodSeconds',
  'CompiledQuery',
  'getExecutor',
  'connectionTimeoutMillis',
  'commandTimeout',
  'createCluster',
  'enableAutoPipelining',
  'failoverDetector',
  'keyPrefix',
  'maxRetriesPerRequest',
]);

const comment = /\/\*[\s\S]*?\*\/|(?<![:'"`])\/\/.*$/gm;
const sources = ['src', 'sandbox/src', 'examples']
  .flatMap((folder) => listFiles(folder, '.ts'))
  .map((path) => ({ path, text: readText(path) }));
const known = new Set(sources.flatMap(({ text }) => text.replace(comment, '').match(/[A-Za-z_]\w*/g) ?? []));

interface Text {
  readonly path: string;
  readonly text: string;
}

/** Returns the names of two words and more, such as `afterCommit`, that are neither in the code nor of others. */
function findUnknown({ path, text }: Text): string[] {
  const names = [...text.matchAll(/`([A-Za-z_][\w.]*)(?=[`(])/g)].flatMap(([, name = '']) => name.split('.'));
  const unknown = names.filter((name) => /[a-z][A-Z]/.test(name) && !known.has(name) && !ofOthers.has(name));
  return unknown.map((name) => `${path}: ${name}`);
}

test('every name of code in the documents exists', () => {
  // CONTRIBUTING.md speaks of the tests.
  const texts = pages
    .filter(({ path }) => path !== 'CONTRIBUTING.md')
    .map((page) => ({ path: page.path, text: withoutBlocks(page) }));
  expect(texts.flatMap(findUnknown)).toEqual([]);
});

test('every name of code in a comment exists', () => {
  const texts = sources.map(({ path, text }) => ({ path, text: (text.match(comment) ?? []).join('\n') }));
  expect(texts.flatMap(findUnknown)).toEqual([]);
});

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
  const { code, out } = await (program === 'transfer-sandbox' ? runSandboxInProcess : run)('help', name);
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

test('every option of a command is in its help', () => {
  const files = ['src/cli', 'sandbox/src/cli'].flatMap((folder) => listFiles(folder, '.ts')).map(readText);
  const commands = files.filter((text) => text.includes('export const help ='));
  expect(commands.length).toBeGreaterThanOrEqual(5);
  for (const command of commands) {
    // Options that several commands share are beside the part of the help that describes them.
    const shared = files.filter((text) => {
      const [, name = ''] = /export const (\w+Options) = \{/.exec(text) ?? [];
      return name !== '' && command.includes(`...${name}`);
    });
    const text = [command, ...shared].join('\n');
    const options = [...text.matchAll(/(?<=[\s{]'?)([a-z][\w-]*)(?='?: (?:text|flag|texts)\b)/g)].map(([name]) => name);
    expect(options.length).toBeGreaterThan(0);
    expect(options.filter((name) => !text.includes(`--${name}`))).toEqual([]);
  }
});
