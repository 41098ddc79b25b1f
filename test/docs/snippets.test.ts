import { join } from 'node:path';
import ts from 'typescript';
import { expect, test } from 'vitest';
import * as root from 'transfer-callbacks';
import { exportsOf, listEntries, readCompilerOptions } from '../../scripts/entries.js';
import { findBlocks, findPage, pages, root as folder, type Block } from './pages.js';

const blocks = pages.flatMap((page) => findBlocks(page, 'ts'));

/** The declarations and sources that were read from disk. To parse them takes longer than to check a text. */
const parsed = new Map<string, ts.SourceFile | undefined>();

function makeHost(options: ts.CompilerOptions): ts.CompilerHost {
  const disk = ts.createCompilerHost(options);
  return {
    ...disk,
    getSourceFile(path, ...rest) {
      if (!parsed.has(path)) parsed.set(path, disk.getSourceFile(path, ...rest));
      return parsed.get(path);
    },
  };
}

/** Compiles each text as a separate module in the folder of the examples, and returns what is wrong with it. */
function findFaults(texts: readonly Block[], ambient = '', changed: ts.CompilerOptions = {}): object[] {
  const options = { ...readCompilerOptions(), ...changed };
  const all = [{ at: 'ambient', code: ambient }, ...texts];
  const sources = new Map(all.map((text, index) => [join(folder, 'examples', 'text', `text-${index}.ts`), text]));
  expect(sources.size).toBe(all.length);
  const disk = makeHost(options);
  const host: ts.CompilerHost = {
    ...disk,
    directoryExists: (path) =>
      path.startsWith(join(folder, 'examples', 'text')) || (disk.directoryExists?.(path) ?? false),
    fileExists: (path) => sources.has(path) || disk.fileExists(path),
    readFile: (path) => sources.get(path)?.code ?? disk.readFile(path),
    getSourceFile(path, languageVersion, ...rest) {
      const source = sources.get(path);
      return source === undefined
        ? disk.getSourceFile(path, languageVersion, ...rest)
        : ts.createSourceFile(path, source.code, languageVersion);
    },
  };
  const program = ts.createProgram([...sources.keys()], options, host);
  // `npm run typecheck` has checked what they import.
  return [...sources].flatMap(([path, { at }]) => {
    const file = program.getSourceFile(path) ?? expect.fail(path);
    const faults = [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)];
    return faults.map(({ start = 0, messageText }) => ({
      block: at,
      line: file.getLineAndCharacterOfPosition(start).line + 1,
      message: ts.flattenDiagnosticMessageText(messageText, '\n'),
    }));
  });
}

test('every TypeScript block of every page compiles as a separate module', () => {
  expect(blocks.length).toBeGreaterThanOrEqual(12);
  expect(findFaults(blocks)).toEqual([]);
}, 300_000);

test('the text for coding agents has code that compiles, in at most 60 lines', () => {
  const skill = findPage('skills/transfer-callbacks/SKILL.md');
  const code = findBlocks(skill, 'ts');
  expect(code.length).toBeGreaterThanOrEqual(2);
  expect(blocks).toEqual(expect.arrayContaining(code));
  expect(skill.text.trimEnd().split('\n').length).toBeLessThanOrEqual(60);
});

/** What an app has where it would write an example. */
const ambient = `
declare const app: import('express').Express;
declare const store: import('transfer-callbacks').CallbackStore;
declare const options: import('transfer-callbacks').ReceiverOptions;
declare const onSuccess: () => void;
declare const onFailed: () => void;
declare const router: ReturnType<typeof import('transfer-callbacks').transferCallbackRouter>;
declare const receiver: import('transfer-callbacks').TransferCallbackReceiver;
declare const service: import('transfer-callbacks/client').TransferService;
declare const pending: import('transfer-callbacks/client').PendingTransfer[];
declare const apiKey: string, apiSecret: string, callbackUrl: string, text: string, url: string;
declare function isLedgerOpen(): Promise<boolean>;
declare function markPaid(externalId: string): Promise<void>;
declare function refund(externalId: string, reason: string | null): Promise<void>;
declare function test(title: string, run: () => Promise<void>, timeoutMs: number): void;
declare const createServer: typeof import('node:http').createServer;
declare const createPool: typeof import('mysql2/promise').createPool;
declare const Redis: typeof import('ioredis').Redis;
declare const Pool: typeof import('pg').Pool, pool: import('pg').Pool;
declare type PoolClient = import('pg').PoolClient;
declare const metrics: typeof import('@opentelemetry/api').metrics;
declare const Counter: typeof import('prom-client').Counter, register: typeof import('prom-client').register;
declare const Gauge: typeof import('prom-client').Gauge, Histogram: typeof import('prom-client').Histogram;
declare interface Connection { execute(sql: string): Promise<unknown[]> }
declare type Work = (tx: Connection) => Promise<void>;
declare const database: Connection & { transaction(work: Work): Promise<void> };
declare const prisma: { $queryRawUnsafe: () => void; $extends: () => void; $transaction: (work: Work) => void };
declare const db: { transaction: (work: Work) => void };
declare const kysely: { executeQuery: () => void; transaction: () => { execute: (work: Work) => void } };
declare const knex: { raw: () => void; transaction: (work: Work) => void };
declare const dataSource: { query: () => void; transaction: (work: Work) => void; manager: Connection };
declare const sequelize: { query: () => void; transaction: (work: Work) => void };
declare const sql: { unsafe: () => void; begin: (work: Work) => void };
`;

test('every export has an example of at most eight lines, and it compiles', () => {
  const entries = listEntries();
  const options = readCompilerOptions();
  const sources = entries.map(({ source }) => source);
  const program = ts.createProgram(sources, options, makeHost(options));
  const exported = new Map(
    entries.flatMap(({ name: entry, source }) =>
      [...exportsOf(program, source)].map(([name, symbol]) => [name, { entry, symbol }]),
    ),
  );
  const examples = [...exported].map(([name, { symbol }]): Block => {
    const tag = symbol.getJsDocTags().find((each) => each.name === 'example');
    return { at: name, code: ts.displayPartsToString(tag?.text).trim() };
  });
  expect(examples.length).toBeGreaterThan(60);
  const isWrong = ({ at, code }: Block): boolean => !code.includes(at) || code.split('\n').length > 8;
  expect(examples.filter(isWrong).map(({ at }) => at)).toEqual([]);
  const imports = [...exported].map(([name, { entry }]) => `import { ${name} } from '${entry}';`).join(' ');
  const modules = examples.map(({ at, code }) => ({ at, code: `${imports}\n${code}` }));
  // An example declares what its reader goes on with, and uses few of the imports. A file without an import is no
  // module.
  const moduleDetection = ts.ModuleDetectionKind.Legacy;
  const changed = { noUnusedLocals: false, verbatimModuleSyntax: false, moduleDetection };
  expect(findFaults(modules, ambient, changed)).toEqual([]);
}, 300_000);

test('no page shows code in a language that is not compiled', () => {
  const uncompiled = pages.flatMap((page) =>
    ['js', 'javascript', 'mjs', 'cjs', 'tsx'].flatMap((each) => findBlocks(page, each)),
  );
  expect(uncompiled.map(({ at }) => at)).toEqual([]);
});

test('the SQL of docs/stores.md is that of the store', () => {
  const [sql] = findBlocks(findPage('docs/stores.md'), 'sql');
  const store = root.pgStore({ connect: () => Promise.reject(new Error('not called')) });
  expect(sql?.code).toBe(store.migrationSql);
});
