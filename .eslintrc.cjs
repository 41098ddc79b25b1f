'use strict';

/** A wall: the files of a room may import nothing that matches these patterns. */
const wall = (files, why, patterns) => ({
  files,
  rules: {
    'no-restricted-imports': 'off',
    '@typescript-eslint/no-restricted-imports': ['error', { patterns: [{ ...patterns, message: why }] }],
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
        'no-console': 'error',
        'prefer-const': 'error',
      },
    },
    {
      files: ['src/**/*.ts'],
      rules: { 'max-lines': ['error', { max: 220, skipBlankLines: true, skipComments: true }] },
    },
    // The walls of the house. Each room says what it may import; everything else is out.
    wall(['src/core/**'], 'core knows no HTTP and no driver: it imports zod, node:crypto-like pure parts and itself.', {
      regex: '^(?!zod$|node:diagnostics_channel$|\\./)',
    }),
    wall(['src/http/**'], 'http imports core and node: parts; express in router.ts alone.', {
      regex: '^(?!node:|\\./|\\.\\./core/)',
    }),
    wall(['src/http/router.ts'], 'the router imports express, core and its own room.', {
      regex: '^(?!express$|node:http$|\\./|\\.\\./core/)',
    }),
    wall(['src/stores/**'], 'a store imports the contract of core, and no driver.', {
      regex: '^(?!node:crypto$|\\./|\\.\\./core/)',
    }),
    wall(['src/testing/**'], 'testing imports core and node:assert.', {
      regex: '^(?!node:assert/strict$|node:crypto$|\\./|\\.\\./core/)',
    }),
    wall(['src/index.ts'], 'the public face never loads testing or sandbox.', {
      regex: '(testing|sandbox|client)/',
    }),
    {
      files: ['examples/**', 'test/**', '*.config.ts'],
      rules: { 'no-console': 'off' },
    },
  ],
};
