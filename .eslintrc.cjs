'use strict';

const { existsSync } = require('node:fs');
const { join } = require('node:path');
const plugin = require('@typescript-eslint/eslint-plugin');

// What an import rule may allow. No `..` within: each folder is allowed by itself.
const ownFolder = String.raw`\./[^/]+`;
// From a folder of `src`, or from one within it.
const lib = String.raw`(?:\.\./){1,2}lib/[^/]+`;
const core = String.raw`(?:\.\./){1,2}core/[^/]+`;
const attempt = String.raw`\.\./attempt/[^/]+`;
const services = String.raw`\.\./services/[^/]+`;
// From a folder of the sandbox, which is built with what it imports of the receiver.
const receiver = (parts) => String.raw`\.\./\.\./\.\./src/(?:${parts})`;
/** From a folder within it, one that holds it: `reconcile` in `client`. */
const holdingFolder = String.raw`\.\./[^/]+`;

const message = 'Import at the top of the file, where the import rules see it.';
const importExpression = { selector: 'ImportExpression', message };
const otherImports = [
  { selector: 'TSImportType', message },
  { selector: 'CallExpression[callee.name="require"]', message },
];
/** `src` runs on the web, too. The sandbox and the command line run on Node alone. */
const timerMethod = {
  selector: 'CallExpression[optional=false] > MemberExpression.callee[property.name=/^(?:unref|ref|hasRef|refresh)$/]',
  message: 'On the web a timer is a number without methods: use `setBackgroundTimer` of lib/deadline.ts.',
};
const runsOnWeb = (files) => /^src\/(?!cli\/)/.test(files);

/** An import rule: these files may import what matches one of the patterns, and nothing else. The last rule of a file counts. */
const allowImports = (files, patterns, why) => ({
  files,
  rules: {
    '@typescript-eslint/no-restricted-imports': [
      'error',
      { patterns: [{ regex: `^(?!(?:${patterns.join('|')})$)`, message: why }] },
    ],
    'no-restricted-syntax': [
      'error',
      importExpression,
      ...otherImports,
      ...(files.some(runsOnWeb) ? [timerMethod] : []),
    ],
  },
});

const hasSqlLibraries = existsSync(join(__dirname, 'test/sql/node_modules'));
// The project service would open each file by itself, and take a quarter longer.
const project = ['tsconfig.json', ...(hasSqlLibraries ? ['test/sql/tsconfig.json'] : [])];
const typescript = ['flat/strict-type-checked', 'flat/stylistic-type-checked'].flatMap((name) => plugin.configs[name]);

module.exports = [
  // The scripts of the console are checked by tsc and in a browser. The types of `examples/hosts` and `examples/prisma` are in
  // packages that this repository does not install, and those of `test/sql` in packages that its tests install.
  {
    ignores: [
      ...['dist/', 'sandbox/dist/', '**/.test/', 'coverage/', 'bench/', 'examples/hosts/', 'examples/prisma/'],
      ...['test/package/projects/', 'sandbox/src/service/console/'],
      ...(hasSqlLibraries ? [] : ['test/sql/']),
    ],
  },
  ...typescript.map((config) => ({ ...config, files: ['**/*.ts'] })),
  {
    files: ['**/*.ts'],
    languageOptions: { parserOptions: { project, tsconfigRootDir: __dirname } },
    rules: {
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/no-import-type-side-effects': 'error',
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
      eqeqeq: 'error',
      'max-lines': ['error', { max: 300, skipBlankLines: true, skipComments: true }],
      'no-console': 'error',
      'no-duplicate-imports': ['error', { allowSeparateTypeImports: true }],
    },
  },
  {
    files: ['{src,sandbox/src}/**/*.ts'],
    rules: {
      'max-lines-per-function': ['error', { max: 60, skipBlankLines: false, skipComments: false }],
    },
  },
  allowImports(['{src,sandbox/src}/**'], ['(?!)'], 'This folder has no import rule yet: give it one in .eslintrc.cjs.'),
  allowImports(['src/lib/**'], [ownFolder], 'lib knows nothing of callbacks.'),
  allowImports(
    ['src/core/**'],
    ['zod/v4', 'node:diagnostics_channel', 'node:async_hooks', 'node:os', lib, String.raw`\./claim/[^/]+`, ownFolder],
    'core knows no HTTP and no driver.',
  ),
  allowImports(
    ['src/core/claim/**'],
    ['node:async_hooks', lib, holdingFolder, ownFolder],
    'A claim knows core, and no schema.',
  ),
  allowImports(
    ['src/http/**'],
    ['node:(?:http2?|net|crypto|buffer|util/types)', core, lib, ownFolder],
    'http knows core and Node.',
  ),
  allowImports(
    ['src/http/verifiers/**'],
    ['node:(?:net|crypto)', core, lib, String.raw`\.\./request\.js`, ownFolder],
    'A verifier knows the request of its sender.',
  ),
  allowImports(
    ['src/http/router.ts'],
    ['express', core, lib, ownFolder],
    'The router knows Express, core and its own folder.',
  ),
  allowImports(['src/stores/**'], ['node:crypto', core, lib, ownFolder], 'A store knows core, and no driver.'),
  allowImports(
    ['src/client/**'],
    ['zod/v4', 'node:diagnostics_channel', core, lib, ownFolder],
    'client knows core, and calls with fetch.',
  ),
  allowImports(
    ['src/client/{inspect,reconcile,service}/**'],
    ['node:diagnostics_channel', core, lib, holdingFolder, ownFolder],
    'These folders know core, and the files of client.',
  ),
  allowImports(
    ['src/metrics/**'],
    ['node:diagnostics_channel', core, lib, ownFolder],
    'metrics knows core, and takes a metrics library by its methods.',
  ),
  allowImports(
    ['sandbox/src/attempt/**'],
    ['node:(?:https?|net|timers/promises)', receiver('(?:core|lib)/[^/]+'), ownFolder],
    'attempt knows core and Node.',
  ),
  allowImports(
    ['sandbox/src/service/**'],
    ['node:(?:http|net|events|fs/promises)', receiver('(?:core|lib)/[^/]+'), attempt, ownFolder],
    'The service knows core, attempt and Node.',
  ),
  allowImports(
    ['sandbox/src/services/**'],
    ['node:crypto', receiver('(?:core|lib)/[^/]+'), attempt, ownFolder],
    'services knows core and attempt.',
  ),
  allowImports(
    ['sandbox/src/deliver/**'],
    ['node:(?:events|https?|net|tls)', receiver('(?:core|lib)/[^/]+'), attempt, services, ownFolder],
    'deliver knows core, attempt and services.',
  ),
  allowImports(
    ['sandbox/src/cli/**'],
    [
      'node:(?:util|module|events|fs|http|net|os|child_process|timers/promises)',
      receiver('(?:lib|cli|testing)/[^/]+'),
      receiver(String.raw`core/(?:payout-)?service\.js`),
      String.raw`\.\./service/[^/]+`,
      services,
      attempt,
      String.raw`\.\./index\.js`,
      String.raw`\./check/(?:check|load-service|payload|report|service)\.js`,
      ownFolder,
    ],
    'The command line of the sandbox knows its service, lib, and what both command lines share.',
  ),
  allowImports(
    ['sandbox/src/cli/check/**'],
    [
      'node:(?:child_process|crypto|fs|module|timers/promises|url)',
      String.raw`\.\./\.\./\.\./\.\./src/(?:(?:lib|cli|testing)/[^/]+|core/(?:payout-)?service\.js)`,
      String.raw`\.\./\.\./(?:service|services|attempt)/[^/]+`,
      String.raw`\.\./\.\./index\.js`,
      holdingFolder,
      ownFolder,
    ],
    '`check` knows what the other commands of the sandbox know.',
  ),
  allowImports(
    ['sandbox/src/index.ts'],
    [
      String.raw`\./(?:deliver|service)/[^/]+`,
      String.raw`\.\./\.\./src/(?:testing/fixtures|client/service/define|core/payout-service)\.js`,
      String.raw`\.\./\.\./src/http/verifiers/[^/]+`,
    ],
    'The entry exports what is in its folders, the fixtures, `defineService` and the verifiers.',
  ),
  allowImports(['src/testing/**'], ['node:assert/strict', core, lib, ownFolder], 'testing knows core.'),
  allowImports(
    ['src/cli/**'],
    ['node:(?:util|module|fs|path|url|child_process|console)', String.raw`\.\./(?:client|node)\.js`, lib, ownFolder],
    'The command line knows the client and the entry for Node.',
  ),
  {
    // The file of a user's app, and the definition that a user names: which one is known at run time only.
    files: ['src/cli/config-file.ts', 'sandbox/src/services/load-by-name.ts'],
    rules: { 'no-restricted-syntax': ['error', ...otherImports] },
  },
  allowImports(
    ['src/shared.ts'],
    [String.raw`\./(?:core|lib|http/verifiers|stores(?:/redis|/sql)?)/[^/]+`, String.raw`\./http/(?!router\.js)[^/]+`],
    'What all entries share must not load Express.',
  ),
  allowImports(
    ['src/node.ts'],
    [String.raw`\./shared\.js`, String.raw`\./http/listener\.js`],
    'The listener, without Express.',
  ),
  allowImports(
    ['src/web.ts'],
    [String.raw`\./shared\.js`, String.raw`\./http/handler\.js`],
    'The handler, without Express.',
  ),
  allowImports(
    ['src/client.ts'],
    [String.raw`\./client/(?:\w+/)?[^/]+`, String.raw`\./http/(?:verifiers/index|request)\.js`],
    'The entry of the client exports what is in its folder, and the verifiers of a definition.',
  ),
  ...['metrics', 'testing'].map((folder) =>
    allowImports(
      [`src/${folder}.ts`],
      [String.raw`\./${folder}/(?:\w+/)?[^/]+`],
      'An entry exports what is in its folder.',
    ),
  ),
  allowImports(
    ['src/index.ts'],
    [String.raw`\./(?:node|web)\.js`, String.raw`\./http/router\.js`],
    'The root entry is `node`, `web` and the router.',
  ),
  {
    files: ['{examples,scripts,test,sandbox/{demo,test}}/**/*.ts', '*.config.ts'],
    rules: { 'no-console': 'off' },
  },
  {
    // What `read` and `get` are given is `any`, as what JSON.parse returns. The receiver checks what `read` returns.
    files: ['examples/services/*.ts'],
    rules: {
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-call': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
    },
  },
];
