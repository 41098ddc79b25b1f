// The import rules of .eslintrc.cjs, which CONTRIBUTING.md lists.
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ESLint } from 'eslint';
import ts from 'typescript';
import { expect, test } from 'vitest';
import { quickTests } from '../vitest.config.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const rules = ['@typescript-eslint/no-restricted-imports', 'no-restricted-syntax'];
const eslint = new ESLint({
  cwd: root,
  // Without types, which these rules do not need, a planted file need not be on disk.
  overrideConfig: { languageOptions: { parserOptions: { project: false } } },
  ruleFilter: ({ ruleId }) => rules.includes(ruleId),
  allowInlineConfig: false,
});

const listSources = (folder: string): string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.[jt]s$/.test(path) && !/node_modules|dist|^\.test\b/.test(path))
    .map((path) => join(root, folder, path));

async function isReported(file: string, code: string): Promise<boolean> {
  const [result] = await eslint.lintText(code, { filePath: join(root, file) });
  return (result ?? expect.fail(`${file} was not linted`)).messages.length > 0;
}

test('no comment of src disables an import rule, which `npm run lint` applies', () => {
  const files = ['src', 'sandbox/src'].flatMap(listSources);
  expect(files.length).toBeGreaterThan(100);
  const comments = files.flatMap((path) => readFileSync(path, 'utf8').match(/eslint-disable.*/g) ?? []);
  // One that names no rule disables all of them.
  const isOfImports = (comment: string): boolean =>
    !/^eslint-disable(?:-next-line|-line)? [@\w]/.test(comment) || rules.some((rule) => comment.includes(rule));
  expect(comments.filter(isOfImports)).toEqual([]);
});

test.each([
  ['src/lib/planted.ts', ['zod', 'node:http', '../core/store.js'], './errors.js'],
  ['src/core/planted.ts', ['express', 'node:http', 'pg', '../http/body.js', './../http/body.js'], '../lib/errors.js'],
  ['src/core/claim/planted.ts', ['zod/v4', 'pg', '../../stores/memory.js'], '../options.js'],
  ['src/http/planted.ts', ['express', 'zod', '../stores/memory.js', '../core/../stores/memory.js'], '../lib/text.js'],
  ['src/http/router.ts', ['zod', 'express/lib/router', '../stores/memory.js'], 'express'],
  ['src/stores/planted.ts', ['ioredis', 'pg', 'node:http', '../http/body.js'], '../lib/errors.js'],
  ['src/stores/sql/planted.ts', ['pg', '../memory.js', '../../http/body.js'], '../../lib/errors.js'],
  ['src/client/planted.ts', ['node:http', 'undici', '../stores/memory.js', '../sandbox.js'], 'zod/v4'],
  ['src/metrics/planted.ts', ['prom-client', '@opentelemetry/api', '../client.js'], '../core/outcomes.js'],
  ['sandbox/src/attempt/planted.ts', ['undici', '../service/options.js', '../../../src/http/body.js'], 'node:https'],
  [
    'sandbox/src/service/planted.ts',
    ['express', '../../../src/http/body.js', '../../../src/client.js'],
    '../attempt/attempt.js',
  ],
  [
    'sandbox/src/cli/planted.ts',
    ['ioredis', 'zod', '../../../src/node.js', '../../../src/client.js', '../../../src/http/router.js'],
    '../../../src/cli/terminal.js',
  ],
  [
    'sandbox/src/cli/check/planted.ts',
    ['ioredis', 'zod', '../../../../src/node.js', '../../../deliver/deliver.js', '../../../../src/http/router.js'],
    '../../service/hints.js',
  ],
  [
    'sandbox/src/index.ts',
    [
      'zod',
      '../../src/client.js',
      '../../src/core/receiver.js',
      '../../src/http/request-receiver.js',
      './cli/trigger.js',
    ],
    '../../src/http/verifiers/tokens.js',
  ],
  ['src/testing/planted.ts', ['vitest', '../stores/memory.js', '../http/router.js'], 'node:assert/strict'],
  [
    'src/cli/planted.ts',
    ['ioredis', '../client/client.js', '../http/router.js', '../../sandbox/src/index.js'],
    '../client.js',
  ],
  ['src/http/verifiers/planted.ts', ['express', '../body.js', '../../stores/memory.js'], '../request.js'],
  ['src/client/reconcile/planted.ts', ['node:http', '../../sandbox.js', '../inspect/verdict.js'], '../ask.js'],
  [
    'src/client/service/planted.ts',
    ['node:http', 'zod', '../inspect/verdict.js', '../reconcile/report.js'],
    '../ask.js',
  ],
  ['src/client.ts', ['./core/errors.js', './http/router.js'], './client/reconcile/reconcile.js'],
  ['src/client.ts', ['./http/listener.js', './http/verifiers/tokens.js'], './http/verifiers/index.js'],
  ['src/shared.ts', ['express', './http/router.js', './client.js'], './stores/memory.js'],
  ['src/node.ts', ['./http/router.js', './http/handler.js', './index.js'], './http/listener.js'],
  ['src/web.ts', ['./http/router.js', './http/listener.js', './index.js'], './http/handler.js'],
  ['src/index.ts', ['express', './lib/errors.js', './client.js'], './http/router.js'],
  ['src/a-new-folder/planted.ts', ['zod', 'node:http', '../lib/errors.js'], undefined],
])('%s may not import %j', async (file, forbidden, allowed) => {
  const toCode = (module: string): string => `import { planted } from '${module}'; export const used = planted;`;
  for (const module of forbidden) expect(await isReported(file, toCode(module)), module).toBe(true);
  if (allowed !== undefined) expect(await isReported(file, toCode(allowed)), allowed).toBe(false);
});

test.each([
  "import type { planted } from 'pg'; export type Used = typeof planted;",
  "import 'pg';",
  "export * from 'pg';",
  "import planted = require('pg'); export const used = planted;",
  "export const later = import('pg');",
  "export type Client = import('pg').Client;",
  "export const client = require('pg');",
])('the import rules see %s', async (code) => {
  expect(await isReported('src/stores/planted.ts', code)).toBe(true);
});

test.each([
  'setTimeout(planted, 1).unref();',
  'timer.refresh();',
  'const timer = setTimeout(planted, 1); timer.unref();',
])('%s is not written in what runs on the web, where a timer is a number', async (code) => {
  for (const folder of ['lib', 'core', 'core/claim', 'http', 'stores/sql', 'client', 'metrics']) {
    expect(await isReported(`src/${folder}/planted.ts`, code), folder).toBe(true);
  }
  expect(await isReported('src/cli/planted.ts', code)).toBe(false);
});

test('the files of test:quick start no Redis, no PostgreSQL and no browser', () => {
  const servers = /support\/(?:servers\/(?!http-servers|serve\b)|helpers\/browser)/;
  const files = quickTests.flatMap((path) => (path.endsWith('.ts') ? [join(root, path)] : listSources(path)));
  expect(files.filter((path) => servers.test(readFileSync(path, 'utf8')))).toEqual([]);
});

test('no files import each other in a circle', () => {
  const files = ['src', 'test', 'sandbox'].flatMap(listSources);
  const known = new Set(files);
  const toFile = (path: string): string => (known.has(path) ? path : path.replace(/js$/, 'ts'));
  const findImports = (path: string): string[] =>
    ts
      .preProcessFile(readFileSync(path, 'utf8'), true, true)
      .importedFiles.map(({ fileName }) => toFile(resolve(path, '..', fileName)))
      .filter((target) => known.has(target));
  const imports = new Map(files.map((path) => [path, findImports(path)]));
  expect([...imports.values()].flat().length).toBeGreaterThan(500);

  const circles: string[] = [];
  const done = new Set<string>();
  const visit = (path: string, way: readonly string[]): void => {
    if (way.includes(path)) circles.push(way.map((each) => relative(root, each)).join(' → '));
    if (done.has(path)) return;
    done.add(path);
    for (const next of imports.get(path) ?? []) visit(next, [...way, path]);
  };
  for (const path of files) visit(path, []);
  expect(circles).toEqual([]);
});
