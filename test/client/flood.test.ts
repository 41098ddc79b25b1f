import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { transferCallbackListener, type TransferCallback, type TransferCallbackOutcome } from 'transfer-callbacks';
import { confirmWith } from 'transfer-callbacks/client';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { receiverOf } from '../core/support.js';
import { post } from '../support/post.js';
import { serve } from '../support/serve.js';
import { gatedClient, startService, type Reply } from './support.js';

/** A service that needs `ms` for each query, whether its client waits or not, and knows one transfer. */
async function startSlowService(ms: number, known: TransferCallback) {
  const queries = { total: 0, running: 0, most: 0 };
  const service = await startService(({ url = '' }) => (response) => {
    queries.total += 1;
    queries.running += 1;
    queries.most = Math.max(queries.most, queries.running);
    setTimeout(() => {
      queries.running -= 1;
      const isKnown = url.endsWith(known.data.id);
      response.writeHead(isKnown ? 200 : 404).end(isKnown ? JSON.stringify({ data: known.data }) : '');
    }, ms);
  });
  return { client: service.client, queries };
}

describe('confirmWith under a flood of forged callbacks', () => {
  // 100 forged callbacks a second, a service of 200 ms a query that can respond to 40, and the attempts of the real
  // callback 1.2 s apart, for 30 s and more.
  test('the real callback is processed within its four attempts, and `concurrency` limits the queries', async () => {
    const real = transferSucceeded();
    const { client, queries } = await startSlowService(200, real);
    const outcomes: TransferCallbackOutcome[] = [];
    const onSuccess = vi.fn();
    const receiver = receiverOf({
      confirm: confirmWith(client),
      handlerTimeoutMs: 4_000,
      onSuccess,
      onOutcome: (outcome) => outcomes.push(outcome),
    });
    const { url, close } = await serve(transferCallbackListener({ receiver }));
    onTestFinished(close);

    const forged: Promise<unknown>[] = [];
    const forge = (): void => {
      forged.push(post(url, transferSucceeded()));
    };
    for (let index = 0; index < 100; index += 1) forge(); // The flood was there before.
    const flood = setInterval(forge, 10);
    const statuses: number[] = [];
    try {
      for (let attempt = 1; attempt <= 4 && statuses.at(-1) !== 200; attempt += 1) {
        if (attempt > 1) await pause(1_200);
        else await vi.waitUntil(() => queries.running === 8);
        statuses.push((await post(url, real)).status);
      }
    } finally {
      clearInterval(flood);
    }
    await Promise.all(forged);

    expect(statuses.at(-1)).toBe(200);
    expect(onSuccess).toHaveBeenCalledOnce();
    expect(queries.most).toBeLessThanOrEqual(8);
    const busy = outcomes.filter(
      (ended) => ended.outcome === 'unconfirmed' && (ended.error as { code?: string }).code === 'BUSY',
    );
    const slowest = Math.max(...busy.map(({ durationMs }) => durationMs));
    console.info(
      `${forged.length} forged callbacks, ${queries.total} queries, at most ${queries.most} at the same time; ` +
        `${busy.length} rejected as BUSY, the slowest after ${Math.round(slowest)} ms; the real one: ${statuses.join(', ')}.`,
    );
    expect(busy.length).toBeGreaterThan(0);
  });

  test('a callback that was rejected as BUSY goes first when it comes again', async () => {
    const client = gatedClient();
    const { gates, read } = client;
    const confirm = confirmWith(client, { concurrency: 1 });
    const { signal } = new AbortController();
    const confirmOf = (id: string): Promise<unknown> => confirm(transferSucceeded({ id }), { signal });
    const accepted = Array.from({ length: 5 }, (_, index) => confirmOf(`forged-${index}`));
    await expect(confirmOf('real')).rejects.toMatchObject({ code: 'BUSY' });
    await expect(confirmOf('forged-5')).rejects.toMatchObject({ code: 'BUSY' });
    const real = confirmOf('real');
    for (let index = 0; index < 6; index += 1) {
      await vi.waitUntil(() => gates.length > index);
      gates[index]?.resolve();
    }
    await Promise.all([...accepted, real]);
    expect(read).toEqual(['forged-0', 'real', 'forged-1', 'forged-2', 'forged-3', 'forged-4']);
  });

  test('of callbacks that were rejected only the last 5 000 to 10 000 are remembered', async () => {
    const client = gatedClient();
    const { read } = client;
    const confirm = confirmWith(client, { concurrency: 1 });
    const { signal } = new AbortController();
    const callback = transferSucceeded();
    const confirmOf = (id: string): Promise<unknown> =>
      confirm({ ...callback, data: { ...callback.data, id } }, { signal });
    const accepted = Array.from({ length: 5 }, (_, index) => confirmOf(`forged-${index}`));
    for (let index = 0; index < 15_001; index += 1) {
      await confirmOf(`rejected-${index}`).catch(() => undefined);
    }
    await expect(confirmOf('rejected-0')).rejects.toMatchObject({ code: 'BUSY' });
    accepted.push(confirmOf('rejected-15000'), confirmOf('rejected-12000'));
    client.openAll();
    await Promise.all(accepted);
    expect(read.slice(0, 3)).toEqual(['forged-0', 'rejected-15000', 'rejected-12000']);
  });
});

describe('confirmWith and a service that does not respond', () => {
  test('the delivery is unconfirmed after timeoutMs, and the slot is free again after as much again', async () => {
    let silent = true;
    const real = transferSucceeded();
    const service = await startService((): Reply => (silent ? () => undefined : [200, { data: real.data }]));
    const receiver = receiverOf({ confirm: confirmWith(service.client, { concurrency: 1, timeoutMs: 2_000 }) });

    const hanging = receiver.receive(transferSucceeded());
    await vi.waitUntil(() => service.received.length === 1);
    const waiting = receiver.receive(transferSucceeded());
    expect(await hanging).toMatchObject({
      outcome: 'unconfirmed',
      error: { code: 'UNAVAILABLE', message: 'The transfer was not read within 2000 ms.' },
    });
    expect(await waiting).toMatchObject({ outcome: 'unconfirmed', error: { code: 'BUSY' } });
    silent = false;
    expect(await receiver.receive(real)).toMatchObject({ outcome: 'processed' });
    expect(service.received).toHaveLength(2);
  });

  test('a delivery that ends early leaves its slot to the query until that has ended', async () => {
    const client = gatedClient();
    const { read } = client;
    const confirm = confirmWith(client, { concurrency: 1 });
    const delivery = new AbortController();
    const first = confirm(transferSucceeded({ id: 'first' }), { signal: delivery.signal });
    const second = confirm(transferSucceeded({ id: 'second' }), { signal: new AbortController().signal });
    delivery.abort(new Error('the delivery has ended'));
    await expect(first).rejects.toThrow('the delivery has ended');
    await pause(50); // Time enough for a second query, were the slot free.
    expect(read).toEqual(['first']);
    client.openAll();
    await second;
    expect(read).toEqual(['first', 'second']);
  });
});

test('a callback that reconciliation has just read is not read again', async () => {
  const real = transferSucceeded();
  const { client, queries } = await startSlowService(0, real);
  const receiver = receiverOf({ confirm: confirmWith(client) });
  expect(await receiver.receive(real, { source: 'reconciliation' })).toMatchObject({ outcome: 'processed' });
  expect(queries.total).toBe(0);
  expect(await receiver.receive(transferSucceeded(), { source: 'queue' })).toMatchObject({ outcome: 'unconfirmed' });
  expect(queries.total).toBe(1);
});
