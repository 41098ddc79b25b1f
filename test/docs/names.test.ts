// The names that documents and comments give in backticks, compared with those of the code.
import { expect, test } from 'vitest';
import { listFiles, pages, readText, withoutBlocks } from './pages.js';

/** Names of the libraries, servers and hosts that the documents and comments speak of. */
const ofOthers = new Set([
  ...[
    'asyncHandler',
    'createSecureServer',
    'onModuleInit',
    'requestHook',
    'requestTimeout',
    'keepAliveTimeout',
    'TimeoutStopSec',
    'preStop',
    'forceFlush',
    'terminationGracePeriodSeconds',
  ],
  ...[
    'ClientSession',
    'CompiledQuery',
    'getExecutor',
    'connectionTimeoutMillis',
    'executeSql',
    'transactionLifetimeLimitSeconds',
  ],
  ...[
    'commandTimeout',
    'createCluster',
    'enableAutoPipelining',
    'failoverDetector',
    'keyPrefix',
    'maxRetriesPerRequest',
  ],
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
