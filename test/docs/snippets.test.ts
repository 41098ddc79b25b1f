import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { basename, join } from 'node:path';
import { compileFunction } from 'node:vm';
import ts from 'typescript';
import { expect, onTestFinished, test } from 'vitest';
import * as root from 'transfer-callbacks';
import * as node from 'transfer-callbacks/node';
import { readCompilerOptions } from '../../scripts/entries.js';
import { findBlocks, findPage, pages, root as folder, type Block } from './pages.js';

const { memoryStore, transferCallbackListener, transferCallbackReceiver } = root;
const blocks = pages.flatMap((page) => findBlocks(page, 'ts'));

/** Returns the one block of a page that has `text`. */
function findBlock(path: string, text: string): Block {
  const [block, ...more] = findBlocks(findPage(path), 'ts').filter(({ code }) => code.includes(text));
  expect(more, `${path} shows ${text} once`).toEqual([]);
  return block ?? expect.fail(`${path} does not show ${text}.`);
}

/** Runs a block as a module, and returns what it exports. */
function runBlock<Exports>({ code }: Block): Partial<Exports> {
  const { outputText } = ts.transpileModule(code, { compilerOptions: { module: ts.ModuleKind.CommonJS } });
  const modules: Record<string, unknown> = { 'transfer-callbacks': root, 'transfer-callbacks/node': node };
  const run = compileFunction(outputText, ['require', 'exports']) as (
    require: (name: string) => unknown,
    exports: object,
  ) => void;
  const exported: Partial<Exports> = {};
  run((name) => modules[name] ?? expect.fail(`it imports ${name}`), exported);
  return exported;
}

test('every TypeScript block of every page compiles as a separate module', () => {
  const options = readCompilerOptions();
  const sources = new Map(
    blocks.map(({ at, code }) => [join(folder, 'examples', `${basename(at).replace(/\W/g, '-')}.ts`), { at, code }]),
  );
  expect(sources.size).toBe(blocks.length);
  expect(blocks.length).toBeGreaterThanOrEqual(12);
  const disk = ts.createCompilerHost(options);
  const host: ts.CompilerHost = {
    ...disk,
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
  const faults = ts.getPreEmitDiagnostics(program).map(({ file, start, messageText }) => ({
    block: sources.get(file?.fileName ?? '')?.at ?? file?.fileName,
    line: file === undefined ? 0 : file.getLineAndCharacterOfPosition(start ?? 0).line + 1,
    message: ts.flattenDiagnosticMessageText(messageText, '\n'),
  }));
  expect(faults).toEqual([]);
}, 300_000);

test('no page shows code in a language that is not compiled', () => {
  const uncompiled = pages.flatMap((page) =>
    ['js', 'javascript', 'mjs', 'cjs', 'tsx'].flatMap((each) => findBlocks(page, each)),
  );
  expect(uncompiled.map(({ at }) => at)).toEqual([]);
});

test('the shutdown of docs/hosts.md ends although a stranger has never finished a request', async () => {
  interface Exported {
    shutDown: (server: Server, receiver: root.TransferCallbackReceiver) => Promise<void>;
  }
  const { shutDown } = runBlock<Exported>(findBlock('docs/hosts.md', 'function shutDown'));
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

  await shutDown?.(server, receiver);

  expect(server.listening).toBe(false);
  expect(receiver.closing).toBe(true);
});

test('the SQL of docs/stores.md is that of the store', () => {
  const [sql] = findBlocks(findPage('docs/stores.md'), 'sql');
  const store = root.pgStore({ connect: () => Promise.reject(new Error('not called')) });
  expect(sql?.code).toBe(store.migrationSql);
});
