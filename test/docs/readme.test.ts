import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { compileFunction } from 'node:vm';
import express from 'express';
import request from 'supertest';
import ts from 'typescript';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { receiverDefaults, receiverOptionNames } from '../../src/core/options.js';
import { answers } from '../../src/http/answers.js';
import { defaultBodyLimitBytes } from '../../src/http/options.js';
import {
  memoryStore,
  postgresStore,
  transferCallbackListener,
  transferCallbackReceiver,
  type TransferCallbackReceiver,
} from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';

const root = fileURLToPath(new URL('../..', import.meta.url));
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
  expect(readme.split('\n').length).toBeLessThanOrEqual(420);
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
}, 180_000);

describe('the quick start', () => {
  const [quickStart = ''] = blocks;

  test('is the beginning of examples/quick-start.ts', () => {
    const example = readFileSync(join(root, 'examples/quick-start.ts'), 'utf8');
    expect(example.slice(0, quickStart.length)).toBe(quickStart);
  });

  test('runs, and does what it says', async () => {
    onTestFinished(() => void vi.restoreAllMocks());
    // The port may be taken: supertest opens one.
    vi.spyOn(express.application, 'listen').mockImplementation(() => createServer());
    const printed = vi.spyOn(console, 'log').mockImplementation(() => undefined);
    const app = await appOf(quickStart);
    const [success, failure] = [transferSucceeded(), transferFailed()];
    for (const callback of [success, success, failure]) {
      await request(app).post('/callbacks/transfers').send(callback).expect(200);
    }
    expect(printed.mock.calls.map((line) => line.join(' '))).toEqual([
      `Paid ${success.data.externalId}: ${success.data.amount} ${success.data.currency}`,
      `Refunded ${failure.data.externalId}: ${failure.data.failureReason ?? ''}`,
    ]);
  });

  /** Runs the block with its imports given to it, and returns its `app`. */
  async function appOf(block: string): Promise<express.Express> {
    const { outputText } = ts.transpileModule(block, { compilerOptions: { module: ts.ModuleKind.CommonJS } });
    const modules: Record<string, unknown> = {
      express: { __esModule: true, default: express },
      'transfer-callbacks': await import('transfer-callbacks'),
    };
    const run = compileFunction(`${outputText}\nreturn app;`, ['require', 'exports']) as (
      require: (name: string) => unknown,
      exports: object,
    ) => express.Express;
    return run((name) => modules[name] ?? expect.fail(`it imports ${name}`), {});
  }
});

test('its shutdown ends although a stranger has never finished a request', async () => {
  const block = blocks.find((code) => code.includes('function shutDown')) ?? expect.fail('there is no shutDown');
  const { outputText } = ts.transpileModule(block, { compilerOptions: { module: ts.ModuleKind.CommonJS } });
  const exported: { shutDown?: (server: Server, receiver: TransferCallbackReceiver) => Promise<void> } = {};
  (compileFunction(outputText, ['exports']) as (exports: object) => void)(exported);
  const receiver = transferCallbackReceiver({
    store: memoryStore(),
    onSuccess: () => undefined,
    onFailed: () => undefined,
    logger: false,
  });
  const server = createServer(transferCallbackListener({ receiver })).listen(0, '127.0.0.1');
  const arrived = once(server, 'request');
  await once(server, 'listening');
  const stranger = connect((server.address() as AddressInfo).port, '127.0.0.1');
  onTestFinished(() => {
    stranger.destroy();
  });
  stranger.on('error', () => undefined);
  stranger.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{"a');
  await arrived;

  await exported.shutDown?.(server, receiver);

  expect(server.listening).toBe(false);
  expect(receiver.closing).toBe(true);
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
