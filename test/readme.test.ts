import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { compileFunction } from 'node:vm';
import express from 'express';
import request from 'supertest';
import ts from 'typescript';
import { describe, expect, test, vi } from 'vitest';
import { receiverDefaults, receiverOptionNames } from '../src/core/options.js';
import { answers } from '../src/http/answers.js';
import { defaultBodyLimitBytes } from '../src/http/listener.js';
import { postgresStore } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { payouts } from '../examples/payouts.js';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const readme = readFileSync(join(root, 'README.md'), 'utf8');
const blocks = [...readme.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code = '']) => code);

/** The rows of the table whose header starts with `first`, as cells. */
function tableOf(first: string): string[][] {
  const lines = readme.split('\n');
  const start = lines.findIndex((line) => line.startsWith(`| ${first} |`));
  const rows = lines.slice(start + 2);
  return rows.slice(0, rows.indexOf('')).map((row) =>
    row
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

const named = (cell = ''): string[] => [...cell.matchAll(/`(\w+)`/g)].map(([, name = '']) => name);

test('it opens with the two commands, which are scripts of the package', () => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: object };
  const [, commands = ''] = /^```sh\n(.*?)^```$/ms.exec(readme) ?? [];
  expect(commands.split('\n').map((line) => line.replace(/ *#.*/, ''))).toEqual([
    'npm ci && npm run demo',
    'npm ci && npm test',
    '',
  ]);
  expect(scripts).toMatchObject({ demo: expect.any(String) as string, test: expect.any(String) as string });
});

test('it is short enough to be read', () => {
  expect(readme.split('\n').length).toBeLessThanOrEqual(370);
});

test('every TypeScript block compiles as a module of its own', () => {
  const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), (path) => readFileSync(path, 'utf8')) as {
    config: object;
  };
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, root);
  const sources = new Map(blocks.map((code, index) => [join(root, 'examples', `readme-${index}.ts`), code]));
  const disk = ts.createCompilerHost(options);
  const host: ts.CompilerHost = {
    ...disk,
    fileExists: (path) => sources.has(path) || disk.fileExists(path),
    readFile: (path) => sources.get(path) ?? disk.readFile(path),
    getSourceFile(path, languageVersion, ...rest) {
      const code = sources.get(path);
      return code === undefined
        ? disk.getSourceFile(path, languageVersion, ...rest)
        : ts.createSourceFile(path, code, languageVersion);
    },
  };
  const program = ts.createProgram([...sources.keys()], options, host);
  const faults = ts.getPreEmitDiagnostics(program).map(({ file, start, messageText }) => ({
    block: file?.fileName,
    line: file === undefined ? 0 : file.getLineAndCharacterOfPosition(start ?? 0).line + 1,
    message: ts.flattenDiagnosticMessageText(messageText, '\n'),
  }));
  expect(blocks.length).toBeGreaterThanOrEqual(6);
  expect(faults).toEqual([]);
}, 60_000);

describe('the quick start', () => {
  const [quickStart = ''] = blocks;

  test('is the beginning of examples/quick-start.ts', () => {
    const example = readFileSync(join(root, 'examples/quick-start.ts'), 'utf8');
    expect(example.slice(0, quickStart.length)).toBe(quickStart);
  });

  test('runs, and does what it says', async () => {
    const paid = vi.spyOn(payouts, 'markPaid').mockResolvedValue();
    const refunded = vi.spyOn(payouts, 'refund').mockResolvedValue();
    const app = await appOf(quickStart);
    const [success, failure] = [transferSucceeded(), transferFailed()];
    for (const callback of [success, success, failure]) {
      await request(app).post('/callbacks/transfers').send(callback).expect(200);
    }
    expect(paid.mock.calls).toEqual([[success.data.externalId, success.data.amount]]);
    expect(refunded.mock.calls).toEqual([[failure.data.externalId, failure.data.failureReason]]);
  });

  /** Runs the block as it stands, with its imports given to it, and returns its `app`. */
  async function appOf(block: string): Promise<express.Express> {
    const { outputText } = ts.transpileModule(block, { compilerOptions: { module: ts.ModuleKind.CommonJS } });
    const modules: Record<string, unknown> = {
      express: { __esModule: true, default: express },
      'transfer-callbacks': await import('transfer-callbacks'),
      './payouts.js': { payouts },
    };
    const run = compileFunction(`${outputText}\nreturn app;`, ['require', 'exports']) as (
      require: (name: string) => unknown,
      exports: object,
    ) => express.Express;
    return run((name) => modules[name] ?? expect.fail(`it imports ${name}`), {});
  }
});

test('the table of answers is the one in the code', () => {
  const documented = tableOf('outcome').map(([outcome, status = '']) => [
    named(outcome)[0],
    Number(status.slice(0, 3)),
    status.includes('Retry-After'),
  ]);
  expect(documented).toEqual(
    Object.entries(answers).map(([outcome, { status, retryAfter }]) => [outcome, status, retryAfter !== undefined]),
  );
});

test('the table of options is the one in the code', () => {
  const rows = tableOf('option');
  expect(rows.flatMap(([name]) => named(name)).sort()).toEqual(
    [...receiverOptionNames, 'verify', 'bodyLimitBytes'].sort(),
  );
  const defaults = rows
    .filter(([, value = '']) => /^[\d ]+$/.test(value) && value !== '')
    .map(([name, value = '']) => [named(name)[0], Number(value.replaceAll(' ', ''))]);
  expect(Object.fromEntries(defaults)).toEqual({ ...receiverDefaults, bodyLimitBytes: defaultBodyLimitBytes });
});

test('the table of the Postgres store is the one in the code', () => {
  const [, sql = ''] = /^```sql\n(.*?)^```$/ms.exec(readme) ?? [];
  expect(sql).toBe(postgresStore({ connect: () => Promise.reject(new Error('not asked')) }).migrationSql);
});

test('every file and folder that it links to exists', () => {
  for (const [, path = ''] of readme.matchAll(/\]\((?!https?:|#)([^)#]+)\)/g)) {
    expect(ts.sys.fileExists(join(root, path)) || ts.sys.directoryExists(join(root, path)), path).toBe(true);
  }
});

test('every section that it links to exists', () => {
  const sections = [...readme.matchAll(/^## (.*)$/gm)].map(([, title = '']) =>
    title.toLowerCase().replaceAll(' ', '-'),
  );
  for (const [, anchor] of readme.matchAll(/\]\(#([^)]+)\)/g)) expect(sections).toContain(anchor);
});
