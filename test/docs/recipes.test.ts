// The recipe of docs/recipes.md for another store, run between two stores.
import { compileFunction } from 'node:vm';
import ts from 'typescript';
import { expect, test } from 'vitest';
import * as root from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { findBlocks, findPage } from './pages.js';

test('after a change of the store a callback that the old store has as handled runs nothing', async () => {
  const blocks = findBlocks(findPage('docs/recipes.md'), 'ts');
  const { code } = blocks.find((block) => block.code.includes('wasHandled')) ?? expect.fail('There is no recipe.');
  const { outputText } = ts.transpileModule(code, { compilerOptions: { module: ts.ModuleKind.CommonJS } });
  const [old, store] = [root.memoryStore(), root.memoryStore()];
  const modules: Record<string, unknown> = {
    ioredis: { Redis: Object },
    pg: { Pool: Object },
    'transfer-callbacks': { ...root, redisStore: () => old, pgStore: () => store },
  };
  const closed: string[] = [];
  const close = (externalId: string, state: string) => closed.push(`${externalId} ${state}`);
  const exported: { receiver?: root.TransferCallbackReceiver } = {};
  const run = compileFunction(outputText, ['require', 'exports', 'close']) as (...given: unknown[]) => void;
  run((name: string) => modules[name], exported, close);
  const receiver = exported.receiver ?? expect.fail('no receiver');

  const noop = () => undefined;
  const [paid, failed] = [transferSucceeded(), transferFailed()];
  const before = root.transferCallbackReceiver({ store: old, onSuccess: noop, onFailed: noop });
  await before.receive(paid);
  await before.receive(failed);
  const [newPaid, newFailed] = [transferSucceeded(), transferFailed()];
  for (const callback of [paid, failed, newPaid, newFailed]) {
    expect(await receiver.receive(callback)).toMatchObject({ outcome: 'processed' });
  }
  expect(closed).toEqual([`${newPaid.data.externalId} paid`, `${newFailed.data.externalId} failed`]);
});
