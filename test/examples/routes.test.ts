// The routes of an app for what the router does not take: several payouts in one body, an event that is only an id, and the
// return of the customer's browser.
import express from 'express';
import { expect, onTestFinished, test, vi } from 'vitest';
import { memoryStore, transferCallbackReceiver, type TransferCallback } from 'transfer-callbacks';
import { defineService } from 'transfer-callbacks/client';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { askRoute } from '../../examples/ask-by-id.js';
import { batchRoute } from '../../examples/batch.js';
import { addReturn } from '../../examples/browser-return.js';
import { startKnowing } from '../client/support.js';
import { later } from '../core/support.js';
import { post } from '../support/helpers/post.js';
import { serve } from '../support/servers/serve.js';
import { serveForTest } from '../support/servers/serve-for-test.js';

interface Item {
  event: string;
  id: string;
  amount: number;
  signature: string;
}

const paid = (id: string, changes: Partial<Item> = {}): Item => ({
  ...{ event: 'paid', id, amount: 5, signature: 'right' },
  ...changes,
});

/** Starts both routes for a service that knows what `query` resolves with. */
async function startRoutes(query?: (id: string) => unknown) {
  const ran: string[] = [];
  const hung = later<undefined>();
  const receiver = transferCallbackReceiver({
    service: defineService({
      read: ({ event, id, amount }: Item) =>
        event === 'customer' ? { ignored: event } : { state: event, id, externalId: id, amount },
      states: { paid: 'SUCCESS', bounced: 'FAILED', waiting: 'PENDING' },
      query,
    }),
    ...{ store: memoryStore(), logger: false, handlerTimeoutMs: 200, inFlightWaitMs: 10_000 },
    async onSuccess({ data: { id } }) {
      if (id === 'throws') throw new Error('The books are closed');
      if (id === 'hangs') await hung.promise;
      ran.push(id);
    },
    onFailed: () => undefined,
  });
  const app = express()
    .use(
      '/batch',
      batchRoute(receiver, (item) => (item as Item).signature === 'right'),
    )
    .use('/ask', askRoute(receiver));
  const { url, close } = await serve(app);
  onTestFinished(async () => {
    hung.resolve(undefined);
    await close();
    await receiver.close({ timeoutMs: 1_000 });
  });
  const send = async (body: unknown): Promise<number> => (await post(`${url}/batch`, body)).status;
  const ask = async (search: string): Promise<number> => (await fetch(`${url}/ask${search}`)).status;
  return { ran, hung, send, ask };
}

test.each<[string, (Item | null)[], status: number, ran: string[]]>([
  ['two payouts', [paid('a'), paid('b')], 200, ['a', 'b']],
  ['one payout twice', [paid('a'), paid('a')], 200, ['a']],
  [
    'an event of no payout, and one that is open',
    [paid('a', { event: 'customer' }), paid('b', { event: 'waiting' })],
    200,
    [],
  ],
  ['one that is forged', [paid('a', { signature: 'wrong' }), paid('b')], 503, ['b']],
  ['one of an unknown state', [paid('a', { event: 'new' }), paid('b')], 503, ['b']],
  ['one with another amount than before', [paid('a'), paid('a', { amount: 6 }), paid('b')], 503, ['a', 'b']],
  ['one that throws', [paid('throws'), paid('b')], 503, ['b']],
  ['one that hangs', [paid('hangs'), paid('b')], 503, ['b']],
  ['a null', [null, paid('b')], 503, ['b']],
])('a body with %s runs the handlers of the others', async (_what, items, status, expected) => {
  const { ran, hung, send } = await startRoutes();
  expect(await send({ items })).toBe(status);
  expect(ran).toEqual(expected);
  hung.resolve(undefined);
  // Its copy runs nothing again.
  expect(await send({ items: items.filter((item) => item !== null && expected.includes(item.id)).slice(0, 1) })).toBe(
    expected.length === 0 ? 400 : 200,
  );
  expect(ran.filter((id) => id !== 'hangs')).toEqual(expected);
});

test.each(['{"items":[]}', '{"items":{}}', '{}', '[]', 'null', '{', `{"items":["${'x'.repeat(1_100_000)}"]}`])(
  'what is no list of payouts is refused, and runs nothing: %#',
  async (body) => {
    const { ran, send } = await startRoutes();
    expect([400, 413]).toContain(await send(body));
    expect(ran).toEqual([]);
  },
);

test('two copies of a body at the same time share the work', async () => {
  const { ran, send } = await startRoutes();
  const body = { items: ['a', 'b', 'c'].map((id) => paid(id)) };
  expect(await Promise.all([send(body), send(body)])).toEqual([200, 200]);
  expect(ran).toEqual(['a', 'b', 'c']);
});

test('an event that is only an id is acknowledged once the service confirms an outcome that was handled', async () => {
  const known: Record<string, string> = { a: 'paid', b: 'bounced', open: 'waiting', strange: 'new' };
  const { ran, ask } = await startRoutes((id) => known[id] && paid(id, { event: known[id] }));
  for (const [search, status] of [
    ['?id=a', 200],
    ['?id=a', 200],
    ['?id=b', 200],
    ['?id=open', 503],
    ['?id=strange', 503],
    ['?id=unheard', 503],
    ['?id=a%2Fb', 503],
    ['', 400],
    ['?id=', 400],
    ['?id=a&id=b', 400],
  ] as const) {
    expect([search, await ask(search)]).toEqual([search, status]);
  }
  expect(ran).toEqual(['a']);
});

test('a flood of ids makes 8 queries at the same time, and the next id is asked for', async () => {
  const asked: string[] = [];
  const goOn = later<undefined>();
  const { ran, ask } = await startRoutes(async (id) => {
    asked.push(id);
    await goOn.promise;
    return id === 'a' ? paid(id) : undefined;
  });
  const flood = Array.from({ length: 8 }, (_, index) => ask(`?id=forged-${index}`));
  await vi.waitUntil(() => asked.length === 8);
  expect(await Promise.all(Array.from({ length: 50 }, () => ask('?id=a')))).toEqual(Array(50).fill(503));
  expect(asked).toHaveLength(8);
  goOn.resolve(undefined);
  expect(await Promise.all(flood)).toEqual(Array(8).fill(503));
  expect(await ask('?id=a')).toBe(200);
  expect(ran).toEqual(['a']);
});

test('the return of the browser handles the transfer as the service reports it, whatever the customer writes, once beside the callback', async () => {
  const callback = transferSucceeded();
  const { externalId: id } = callback.data;
  const transaction = { ...callback.data, status: 'PENDING' };
  const other = transferSucceeded(); // of another customer
  const service = await startKnowing(transaction, { ...other.data });
  let state: 'open' | 'paid' | 'failed' = 'open';
  const handled: string[][] = [];
  const close = ({ event, data }: TransferCallback, to: 'paid' | 'failed') => {
    handled.push([event, data.externalId]);
    state = to;
  };
  const receiver = transferCallbackReceiver({
    service: service.client,
    store: memoryStore(),
    onSuccess: (given) => {
      close(given, 'paid');
    },
    onFailed: (given) => {
      close(given, 'failed');
    },
    logger: false,
  });
  const app = express();
  addReturn(app, receiver, { findPayout: () => Promise.resolve({ id, state }) });
  const shop = await serveForTest(app);
  const forge = async (status: string): Promise<unknown> => {
    const query = new URLSearchParams({
      status,
      event: `transfer.${status.toLowerCase()}`,
      id: other.data.id,
      externalId: id,
    });
    return (await fetch(`${shop}/payouts/return?${query.toString()}`)).json();
  };

  for (const status of ['SUCCESS', 'FAILED']) expect(await forge(status)).toEqual({ state: 'open' });
  expect(handled).toEqual([]);

  Object.assign(transaction, { status: 'SUCCESS' });
  expect(await Promise.all([forge('FAILED'), forge('SUCCESS')])).toEqual([{ state: 'paid' }, { state: 'paid' }]);
  expect(await receiver.receive(callback)).toMatchObject({ outcome: 'duplicate' });
  expect(await forge('FAILED')).toEqual({ state: 'paid' });
  expect(handled).toEqual([['transfer.success', id]]);
}, 60_000);
