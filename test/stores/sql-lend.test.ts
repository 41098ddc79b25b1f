// What a handler may do with `tx`, by the rules of its library. The libraries themselves: test/sql, once a week.
import { EventEmitter } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { later } from '../core/support.js';
import { lend, type LendRules } from '../../src/stores/sql/lend.js';
import { containing } from '../support/helpers/containing.js';

const isOver = { code: 'TRANSACTION_CONTROL', message: containing('the handler has finished') };
const isControl = { code: 'TRANSACTION_CONTROL', message: containing('the store ends the transaction') };

test('a query rejects where it would throw, or calls back, and any other use of `tx` after the handler throws', async () => {
  const query: (text: string, callback?: (error: unknown) => void) => unknown = (text) => {
    throw new Error(`no ${text}`);
  };
  const loan = lend(
    {
      model: { add: () => 'added' },
      query,
      escape: (text: string) => `"${text}"`,
      release: (): unknown => 'released',
      end: (callback: (word: string) => void) => {
        callback('ended');
      },
      commit: () => 'committed',
      [Symbol.toStringTag]: 'Connection',
    },
    { queries: ['query'], ignored: ['release', 'end'], controls: ['commit'] },
  );
  const { tx } = loan;
  const { escape } = tx;
  expect([escape('a'), tx.model.add(), await tx.release()]).toEqual(['"a"', 'added', undefined]);
  await expect(tx.query('x')).rejects.toThrow('no x');
  await expect(tx.query('COMMIT')).rejects.toMatchObject(isControl);
  await expect(tx.commit()).rejects.toMatchObject(isControl);
  const called = later<unknown>();
  expect(tx.query('ROLLBACK', called.resolve)).toBe(undefined);
  expect(await called.promise).toMatchObject(isControl);

  const ended = later<unknown>();
  tx.end(ended.resolve);
  expect(await ended.promise).toBe(undefined);

  loan.end(true);
  await expect(tx.query('x')).rejects.toMatchObject(isOver);
  await expect(tx.commit()).rejects.toMatchObject(isControl);
  expect(() => tx.model).toThrow(expect.objectContaining(isOver));
  expect(() => escape('a')).toThrow(expect.objectContaining(isOver));
  // An app may release it in a `finally`, resolve a promise with it, and print it.
  expect([await tx.release(), await Promise.resolve(tx), tx[Symbol.toStringTag]]).toEqual([
    undefined,
    tx,
    'Connection',
  ]);
});

test.each([
  ['COMMIT', true],
  [' commit and chain', true],
  ['BEGIN', true],
  ['start transaction', true],
  ['\nROLLBACK', true],
  ['rollback work', true],
  ['ROLLBACK AND CHAIN', true],
  ['end', true],
  ['END;', true],
  ['abort', true],
  ['PREPARE  TRANSACTION', true],
  [{ text: 'COMMIT' }, true],
  [{ sql: 'COMMIT' }, true],
  ['ROLLBACK TO part', false],
  ['rollback  work  to  savepoint part', false],
  ['ROLLBACK TRANSACTION TO part', false],
  ['ROLLBACK TOGETHER', true],
  ['PREPARE plan AS SELECT 1', false],
  ['starting', false],
  ['endless', false],
  ['SELECT 1; COMMIT', false],
  ['LOCK TABLE payouts IN SHARE MODE', false],
  [{ text: 1 }, false],
  [undefined, false],
])('the query %j ends a transaction: %s', async (query, ends) => {
  const library = { query: (sent: unknown) => Promise.resolve({ sent }) };
  const sent = lend(library, { queries: ['query'] }).tx.query(query);
  if (ends) await expect(sent).rejects.toMatchObject(isControl);
  else expect(await sent).toEqual({ sent: query });
});

test.each([
  ['COMMIT', true],
  [' commit and no chain', true],
  ['END;', true],
  ['Rollback work ; SELECT 1', true],
  ['abort', true],
  ["PREPARE TRANSACTION 'a'", true],
  ['ROLLBACK TO part', false],
  ['end_at > now()', false],
  ['commit IS NULL', false],
  ['BEGIN', false],
  ['SELECT 1; COMMIT', false],
])('the lazy statement %j ends a transaction: %s', (text, ends) => {
  const library = Object.assign((query: unknown) => query, { unsafe: (query: unknown) => query });
  const { tx } = lend(library, { lazy: ['unsafe'] });
  const template = Object.assign([text], { raw: [text] });
  for (const [send, query] of [
    [(given: unknown) => tx.unsafe(given), text],
    [tx, template],
  ] as const) {
    if (ends) expect(() => send(query)).toThrow(expect.objectContaining(isControl));
    else expect(send(query)).toBe(query);
  }
  // Names of columns.
  expect([tx(text), tx([text])]).toEqual([text, [text]]);
});

test('the parts of `tx` have their own rules, and a control that ends a nested transaction is called', async () => {
  const runner = { depth: 2, commit: () => 'committed', query: () => Promise.resolve('sent') };
  const loan = lend(
    { runner, missing: null as object | null, plain: {} },
    {
      parts: {
        runner: {
          controls: ['commit'],
          isNested: (target, name) => Reflect.get(target, 'depth') === 2 && name === 'commit',
        },
        missing: {},
      },
    },
  );
  const { tx } = loan;
  expect([tx.runner.commit(), tx.missing, tx.runner === tx.runner]).toEqual(['committed', null, true]);
  runner.depth = 1;
  await expect(tx.runner.commit()).rejects.toMatchObject(isControl);
  const kept = tx.runner;
  loan.end(true);
  expect(() => kept.query()).toThrow(expect.objectContaining(isOver));
});

test('a transaction that is a function is lent as one', () => {
  const loan = lend(Object.assign((table: string) => `of ${table}`, { raw: () => 'raw' }));
  const { tx } = loan;
  expect([tx('ledger'), tx.raw()]).toEqual(['of ledger', 'raw']);
  loan.end(true);
  expect(() => tx('ledger')).toThrow(expect.objectContaining(isOver));
});

interface Nesting {
  readonly write: () => string;
  readonly find: () => Promise<object>;
  readonly transaction: (work: (nested: Nesting, depth: number) => Promise<object>) => Promise<object>;
  readonly savepoint: () => PromiseLike<Nesting>;
}

test('a nested transaction is lent with the others, and its end is waited for', async () => {
  const goOn = later();
  const row = { id: 1 };
  const library: Nesting = {
    write: () => 'written',
    find: () => Promise.resolve(row),
    transaction: (work) => work(library, 1),
    savepoint: () => Promise.resolve(library),
  };
  const loan = lend(library);
  const { tx } = loan;
  const { savepoint } = tx;
  expect(loan.idle()).toBe(undefined);
  expect(await tx.find()).toBe(row);
  let nested: Nesting | undefined;
  const running = tx.transaction(async (inner, depth) => {
    nested = inner;
    expect([inner.write(), depth]).toEqual(['written', 1]);
    await goOn.promise;
    return row;
  });
  let isIdle = false;
  const idled = loan.idle()?.then(() => (isIdle = true));
  await setImmediate();
  expect(isIdle).toBe(false);
  const other = await savepoint();
  loan.end(false);
  for (const each of [nested, other]) expect(() => each?.write()).toThrow(expect.objectContaining(isOver));
  goOn.resolve();
  expect(await running).toBe(row);
  await idled;
  expect(loan.idle()).toBe(undefined);
});

test('a nested transaction has the rules of its library, and a control of it is refused', async () => {
  const library = { release: () => 'released', transaction: (work: (nested: object) => unknown) => work(library) };
  const rules: LendRules = { controls: ['release'] };
  const { tx } = lend(library, { ...rules, nested: rules });
  for (const each of [tx, tx.transaction((nested) => nested) as typeof library]) {
    await expect(each.release()).rejects.toMatchObject(isControl);
  }
});

test.each(['LOCK TABLES payouts WRITE', '\nlock table payouts read', { sql: 'LOCK TABLES payouts READ' }])(
  'the query %j is refused by every method, because MySQL would commit before it',
  (query) => {
    const { tx } = lend({ raw: (sent: unknown) => sent });
    expect(() => tx.raw(query)).toThrow(
      expect.objectContaining({ code: 'TRANSACTION_CONTROL', message: containing('it would commit what was written') }),
    );
  },
);

test('a nested transaction that is no promise, or gives no object, is returned as it is', () => {
  const builder = { then: 'no method' };
  const { tx } = lend({
    transaction: (work?: (given: unknown) => unknown) =>
      work === undefined ? builder : { seen: ['text', null].map(work) },
  });
  expect(tx.transaction()).toBe(builder);
  expect(tx.transaction((given) => given)).toEqual({ seen: ['text', null] });
});

test('the failure of a query that a handler has left behind ends no process', async () => {
  const emitter = new EventEmitter();
  const { tx } = lend(
    { query: (text: string) => (text === 'emits' ? emitter : Promise.reject(new Error(text))) },
    { queries: ['query'] },
  );
  void tx.query('rejects');
  void tx.query('COMMIT');
  expect(tx.query('emits')).toBe(emitter);
  emitter.emit('error', new Error('left behind'));
  await setImmediate();
});
