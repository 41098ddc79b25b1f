import { compileFunction } from 'node:vm';
import ts from 'typescript';
import { memoryStore, transferCallbackReceiver, type TransferCallback } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { expect, test } from 'vitest';
import type { StandardSchema } from '../../src/lib/standard-schema.js';
import { findBlocks, listFiles, pages, readText, type Block } from './pages.js';

const payout = { id: 7, reference: 'payout-1', amount: 1999, currency: 'XAF' };

/** The callbacks of another service than the documented one, by the code whose schema takes them. */
const callbacksOfOthers: Readonly<Record<string, readonly object[]>> = {
  'examples/another-service.ts': [
    { id: 'ev_1', type: 'payout.paid', payout },
    { id: 'ev_2', type: 'payout.bounced', payout: { ...payout, id: 8, reason: null } },
    { id: 'ev_3', type: 'charge.paid', charge: { ...payout, id: 9 } },
    { id: 'ev_4', type: 'payout.pending' },
  ],
};

const examples = listFiles('examples', '.ts').map((at): Block => ({ at, code: readText(at) }));
const withSchemas = [...examples, ...pages.flatMap((page) => findBlocks(page, 'ts'))].filter(({ code }) =>
  /from 'zod\b/.test(code),
);

/** What stands in for all that is not zod: it can be called, constructed and read, and each time is itself again. */
const anything: unknown = new Proxy(Object, {
  get: (_target, key) => (key === 'then' || typeof key === 'symbol' ? undefined : anything),
  apply: () => anything,
  construct: () => anything as object,
});

/** zod, with every schema that it makes added to `made`. */
function recordZod(zod: object, made: unknown[]): object {
  return new Proxy(zod, {
    get(_target, key): unknown {
      if (key === '__esModule') return true;
      if (key === 'z') return recordZod(zod, made);
      const member: unknown = Reflect.get(zod, key);
      if (typeof member !== 'function') return member;
      return (...args: readonly unknown[]): unknown => {
        const schema: unknown = Reflect.apply(member, zod, args);
        made.push(schema);
        return schema;
      };
    },
  });
}

/** Runs a module with the zod of this test run. Resolves with the schemas that zod has made for it. */
async function findSchemas({ code }: Block): Promise<StandardSchema<TransferCallback>[]> {
  const { outputText } = ts.transpileModule(code, { compilerOptions: { module: ts.ModuleKind.CommonJS } });
  const made: StandardSchema<TransferCallback>[] = [];
  const zods: Record<string, object> = { zod: await import('zod'), 'zod/v4': await import('zod/v4') };
  const run = compileFunction(`return (async () => {${outputText}})()`, ['require', 'exports', 'process']) as (
    require: (name: string) => unknown,
    exports: object,
    process: object,
  ) => Promise<void>;
  const load = (name: string): unknown => {
    if (!name.startsWith('zod')) return anything;
    return recordZod(zods[name] ?? expect.fail(`Add ${name} to this test.`), made);
  };
  await run(load, {}, { argv: [], env: {} });
  return made;
}

/** Resolves with whether a receiver with the schema handles each of the callbacks. */
async function handlesAll(schema: StandardSchema<TransferCallback>, callbacks: readonly object[]): Promise<boolean> {
  const handler = () => undefined;
  const handlers = { onSuccess: handler, onFailed: handler, onOther: handler };
  const receiver = transferCallbackReceiver({ store: memoryStore(), schema, ...handlers, logger: false });
  const outcomes = await Promise.all(callbacks.map((callback) => receiver.receive(callback)));
  return outcomes.every(({ outcome }) => outcome === 'processed');
}

test.each(withSchemas)('$at starts, none of its schemas throws, and one handles every callback', async (block) => {
  const schemas = await findSchemas(block);
  const callbacks = callbacksOfOthers[block.at] ?? [transferSucceeded(), transferFailed()];
  for (const schema of schemas) {
    for (const callback of callbacks) await schema['~standard'].validate(callback);
  }
  const handled = await Promise.all(schemas.map((schema) => handlesAll(schema, callbacks)));
  expect(handled, 'a schema for these callbacks, or the callbacks for its schema').toContain(true);
});

test('the pages and the examples show at least one schema', () => {
  expect(withSchemas).not.toEqual([]);
});
