import type { TransferCallback } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { transferService } from 'transfer-callbacks/client';
import { expect, test } from 'vitest';
import type { StandardSchema } from '../../src/lib/standard-schema.js';
import { receiverOf } from '../core/support.js';
import { findBlocks, listFiles, pages, readText, runBlock, type Block } from './pages.js';

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
async function findSchemas(block: Block): Promise<StandardSchema<TransferCallback>[]> {
  const made: StandardSchema<TransferCallback>[] = [];
  const zods: Record<string, object> = { zod: await import('zod'), 'zod/v4': await import('zod/v4') };
  const load = (name: string): unknown =>
    name.startsWith('zod') ? recordZod(zods[name] ?? expect.fail(`Add ${name} to this test.`), made) : anything;
  await runBlock(block, load, { process: { argv: [], env: {} } });
  return made;
}

const callbacks = [transferSucceeded(), transferFailed()];

/** Resolves with whether a receiver with the schema handles each of the callbacks. */
async function handlesAll(schema: StandardSchema<TransferCallback>): Promise<boolean> {
  const receiver = receiverOf({ service: transferService({ payload: schema }) });
  const outcomes = await Promise.all(callbacks.map((callback) => receiver.receive(callback)));
  return outcomes.every(({ outcome }) => outcome === 'processed');
}

test.each(withSchemas)('$at starts, and none of its schemas throws', async (block) => {
  for (const schema of await findSchemas(block)) {
    for (const callback of callbacks) await schema['~standard'].validate(callback);
  }
});

/** What a service of another shape sends is the `payload` of its definition, and no `schema` of the receiver. */
const documented = withSchemas.filter(({ code }) => !code.includes('defineService'));

test.each(documented)('a schema of $at handles every callback', async (block) => {
  const handled = await Promise.all((await findSchemas(block)).map(handlesAll));
  expect(handled, 'a schema for these callbacks').toContain(true);
});

test('the pages and the examples show at least one schema', () => {
  expect(withSchemas).not.toEqual([]);
});
