'use strict';

// What may come through a door. No `..` within: the way to another room leads through its own door.
const ownRoom = String.raw`\./[^/]+`;
const core = String.raw`\.\./core/[^/]+`;
const sandbox = String.raw`\.\./sandbox/[^/]+`;
const attempt = String.raw`\.\./attempt/[^/]+`;

const importExpression = {
  selector: 'ImportExpression',
  message: 'Import at the top of the file, where the walls see it.',
};
const gate = [
  { selector: 'TSImportType', message: 'Import at the top of the file, where the walls see it.' },
  { selector: 'CallExpression[callee.name="require"]', message: 'Import at the top of the file.' },
];

/** A wall: the files of a room may import what matches one of its doors, and nothing else. */
const wall = (files, doors, why) => ({
  files,
  rules: {
    '@typescript-eslint/no-restricted-imports': [
      'error',
      { patterns: [{ regex: `^(?!(?:${doors.join('|')})$)`, message: why }] },
    ],
    'no-restricted-syntax': ['error', importExpression, ...gate],
  },
});

module.exports = {
  root: true,
  overrides: [
    {
      files: ['**/*.ts'],
      parser: '@typescript-eslint/parser',
      parserOptions: { projectService: true, tsconfigRootDir: __dirname },
      plugins: ['@typescript-eslint'],
      extends: ['plugin:@typescript-eslint/strict-type-checked', 'plugin:@typescript-eslint/stylistic-type-checked'],
      rules: {
        '@typescript-eslint/consistent-type-imports': 'error',
        '@typescript-eslint/no-import-type-side-effects': 'error',
        '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
        '@typescript-eslint/switch-exhaustiveness-check': 'error',
        eqeqeq: 'error',
        'max-lines': ['error', { max: 300, skipBlankLines: true, skipComments: true }],
        'no-console': 'error',
        'prefer-const': 'error',
      },
    },
    {
      files: ['src/**/*.ts'],
      rules: {
        'max-lines-per-function': ['error', { max: 60, skipBlankLines: false, skipComments: false }],
      },
    },
    // The walls of the house; the last one that matches a file is its own.
    wall(['src/**'], ['(?!)'], 'This room has no door yet: give it a wall in .eslintrc.cjs.'),
    wall(
      ['src/core/**'],
      ['zod/v4', 'node:diagnostics_channel', 'node:async_hooks', 'node:os', ownRoom],
      'core knows no HTTP and no driver.',
    ),
    wall(['src/http/**'], ['node:(?:http2?|net|crypto|buffer|util/types)', core, ownRoom], 'http knows core and Node.'),
    wall(['src/http/router.ts'], ['express', core, ownRoom], 'The router knows Express, core and its own room.'),
    wall(['src/stores/**'], ['node:crypto', core, ownRoom], 'A store knows core, and no driver.'),
    wall(
      ['src/client/**'],
      ['zod/v4', 'node:diagnostics_channel', core, ownRoom],
      'client knows core, and calls with fetch.',
    ),
    wall(
      ['src/metrics/**'],
      ['node:diagnostics_channel', core, ownRoom],
      'metrics knows core, and takes a metrics library by its methods.',
    ),
    wall(['src/attempt/**'], ['node:(?:https?|net|timers/promises)', core, ownRoom], 'attempt knows core and Node.'),
    wall(
      ['src/sandbox/**'],
      ['node:(?:http|net|events|fs/promises)', core, attempt, ownRoom],
      'sandbox knows core, attempt and Node.',
    ),
    wall(
      ['src/testing/**'],
      ['node:(?:assert/strict|events|https?|net|tls)', core, attempt, ownRoom],
      'testing knows core and attempt.',
    ),
    wall(
      ['src/cli/**'],
      [
        'node:(?:util|module|events|fs|path|url|http|net|os|child_process)',
        String.raw`\.\./(?:client/index|core/(?:checks|options|text)|http/verifiers|node|stores/(?:redis|postgres))\.js`,
        sandbox,
        attempt,
        ownRoom,
      ],
      'The command line knows attempt, the sandbox, the client, the verifiers and the shared stores.',
    ),
    {
      // The file of a user's app: its path is known at run time only.
      files: ['src/cli/app.ts'],
      rules: { 'no-restricted-syntax': ['error', ...gate] },
    },
    wall(
      ['src/shared.ts'],
      [String.raw`\./(?:core|stores)/[^/]+`, String.raw`\./http/(?!router\.js)[^/]+`],
      'What all entries share must not load Express.',
    ),
    wall(
      ['src/node.ts'],
      [String.raw`\./shared\.js`, String.raw`\./http/listener\.js`],
      'The listener, without Express.',
    ),
    wall(['src/web.ts'], [String.raw`\./shared\.js`, String.raw`\./http/handler\.js`], 'The handler, without Express.'),
    wall(
      ['src/index.ts'],
      [String.raw`\./(?:node|web)\.js`, String.raw`\./http/router\.js`],
      'The root entry is `node`, `web` and the router.',
    ),
    {
      files: ['{examples,scripts,test}/**/*.ts', '*.config.ts'],
      rules: { 'no-console': 'off' },
    },
    {
      // Data, one item a line: there is no code in it to split.
      files: ['test/support/malformed-json-data.ts'],
      rules: { 'max-lines': 'off' },
    },
  ],
};
