'use strict';

const { existsSync } = require('node:fs');
const { join } = require('node:path');
const plugin = require('@typescript-eslint/eslint-plugin');

// What an import rule may allow. No `..` within: each folder is allowed by itself.
const ownFolder = String.raw`\./[^/]+`;
const core = String.raw`\.\./core/[^/]+`;
const sandbox = String.raw`\.\./sandbox/[^/]+`;
const attempt = String.raw`\.\./attempt/[^/]+`;

const message = 'Import at the top of the file, where the import rules see it.';
const importExpression = { selector: 'ImportExpression', message };
const otherImports = [
  { selector: 'TSImportType', message },
  { selector: 'CallExpression[callee.name="require"]', message },
];

/** An import rule: these files may import what matches one of the patterns, and nothing else. The last rule of a file counts. */
const allowImports = (files, patterns, why) => ({
  files,
  rules: {
    '@typescript-eslint/no-restricted-imports': [
      'error',
      { patterns: [{ regex: `^(?!(?:${patterns.join('|')})$)`, message: why }] },
    ],
    'no-restricted-syntax': ['error', importExpression, ...otherImports],
  },
});

const typescript = ['flat/strict-type-checked', 'flat/stylistic-type-checked'].flatMap((name) => plugin.configs[name]);

module.exports = [
  // The scripts of the console are checked by tsc and in a browser. The types of `examples/hosts` and `examples/prisma` are in
  // packages that this repository does not install, and those of `test/sql` in packages that its tests install.
  {
    ignores: [
      ...['dist/', '.test/', 'coverage/', 'bench/', 'examples/hosts/', 'examples/prisma/'],
      ...['test/package/projects/', 'src/sandbox/console/'],
      ...(existsSync(join(__dirname, 'test/sql/node_modules')) ? [] : ['test/sql/']),
    ],
  },
  ...typescript.map((config) => ({ ...config, files: ['**/*.ts'] })),
  {
    files: ['**/*.ts'],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: __dirname } },
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
    files: ['src/**/*.ts'],
    rules: {
      'max-lines-per-function': ['error', { max: 60, skipBlankLines: false, skipComments: false }],
    },
  },
  allowImports(['src/**'], ['(?!)'], 'This folder has no import rule yet: give it one in .eslintrc.cjs.'),
  allowImports(
    ['src/core/**'],
    ['zod/v4', 'node:diagnostics_channel', 'node:async_hooks', 'node:os', ownFolder],
    'core knows no HTTP and no driver.',
  ),
  allowImports(
    ['src/http/**'],
    ['node:(?:http2?|net|crypto|buffer|util/types)', core, ownFolder],
    'http knows core and Node.',
  ),
  allowImports(
    ['src/http/router.ts'],
    ['express', core, ownFolder],
    'The router knows Express, core and its own folder.',
  ),
  allowImports(['src/stores/**'], ['node:crypto', core, ownFolder], 'A store knows core, and no driver.'),
  allowImports(
    ['src/stores/sql/**'],
    [String.raw`\.\./\.\./core/[^/]+`, ownFolder],
    'A store knows core, and no driver.',
  ),
  allowImports(
    ['src/client/**'],
    ['zod/v4', 'node:diagnostics_channel', core, ownFolder],
    'client knows core, and calls with fetch.',
  ),
  allowImports(
    ['src/metrics/**'],
    ['node:diagnostics_channel', core, ownFolder],
    'metrics knows core, and takes a metrics library by its methods.',
  ),
  allowImports(
    ['src/attempt/**'],
    ['node:(?:https?|net|timers/promises)', core, ownFolder],
    'attempt knows core and Node.',
  ),
  allowImports(
    ['src/sandbox/**'],
    ['node:(?:http|net|events|fs/promises)', core, attempt, ownFolder],
    'sandbox knows core, attempt and Node.',
  ),
  allowImports(
    ['src/testing/**'],
    ['node:(?:assert/strict|events|https?|net|tls)', core, attempt, ownFolder],
    'testing knows core and attempt.',
  ),
  allowImports(
    ['src/cli/**'],
    [
      'node:(?:util|module|events|fs|path|url|http|net|os|child_process|console)',
      String.raw`\.\./(?:client/index|core/(?:checks|text)|node)\.js`,
      sandbox,
      attempt,
      ownFolder,
    ],
    'The command line knows attempt, the sandbox, the client and the entry for Node.',
  ),
  {
    // The file of a user's app: its path is known at run time only.
    files: ['src/cli/config-file.ts'],
    rules: { 'no-restricted-syntax': ['error', ...otherImports] },
  },
  allowImports(
    ['src/shared.ts'],
    [String.raw`\./(?:core|stores(?:/sql)?)/[^/]+`, String.raw`\./http/(?!router\.js)[^/]+`],
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
    ['src/index.ts'],
    [String.raw`\./(?:node|web)\.js`, String.raw`\./http/router\.js`],
    'The root entry is `node`, `web` and the router.',
  ),
  {
    files: ['{examples,scripts,test}/**/*.ts', '*.config.ts'],
    rules: { 'no-console': 'off' },
  },
];
