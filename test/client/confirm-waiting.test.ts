import { getEventListeners } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { confirmWith } from 'transfer-callbacks/client';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { fakeClock, never, receiverOf } from '../core/support.js';
import { gatedClient, startKnowing, startService, type Reply } from './support.js';
import { containing } from '../support/containing.js';

afterEach(() => {
  vi.useRealTimers();
});

describe('the callbacks that confirmWith lets wait', () => {
  test('are four for each query, and the next one is rejected as BUSY immediately', async () => {
    fakeClock();
    const client = gatedClient();
    const confirm = confirmWith(client, { concurrency: 2 });
    const confirmOf = (id: string): Promise<unknown> =>
      confirm(transferSucceeded({ id }), { signal: new AbortController().signal });
    const accepted = Array.from({ length: 10 }, (_, index) => confirmOf(`tr-${index}`));
    await expect(confirmOf('tr-10')).rejects.toMatchObject({
      code: 'BUSY',
      message: containing('Too many callbacks are waiting to be confirmed.'),
    });
    client.openAll();
    await Promise.all(accepted);
    expect(client.read).toHaveLength(10);
  });

  test('leave no timer and no listener behind, however they end', async () => {
    fakeClock();
    const client = gatedClient();
    const confirm = confirmWith(client, { concurrency: 1 });
    const { signal } = new AbortController();
    const confirmOf = (id: string): Promise<unknown> => confirm(transferSucceeded({ id }), { signal });
    const accepted = Array.from({ length: 5 }, (_, index) => confirmOf(`tr-${index}`));
    await expect(confirmOf('tr-5')).rejects.toMatchObject({ code: 'BUSY' });
    client.openAll();
    await Promise.all(accepted);
    expect(vi.getTimerCount()).toBe(0);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
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
    for (let index = 0; index < 10_001; index += 1) {
      await confirmOf(`rejected-${index}`).catch(() => undefined);
    }
    await expect(confirmOf('rejected-0')).rejects.toMatchObject({ code: 'BUSY' });
    accepted.push(confirmOf('rejected-10000'), confirmOf('rejected-5000'));
    client.openAll();
    await Promise.all(accepted);
    expect(read.slice(0, 3)).toEqual(['forged-0', 'rejected-10000', 'rejected-5000']);
  });
});

describe('confirmWith and a service that does not respond', () => {
  test('the delivery is unconfirmed after timeoutMs, and the slot is free again after as much again', async () => {
    let silent = true;
    const real = transferSucceeded();
    const service = await startService((): Reply => (silent ? () => undefined : [200, { data: real.data }]));
    const receiver = receiverOf({ confirm: confirmWith(service.client, { concurrency: 1, timeoutMs: 1_000 }) });

    const hanging = receiver.receive(transferSucceeded());
    await vi.waitUntil(() => service.received.length === 1);
    const waiting = receiver.receive(transferSucceeded());
    expect(await hanging).toMatchObject({
      outcome: 'unconfirmed',
      error: { code: 'UNAVAILABLE', message: containing('The transfer was not read within 1000 ms.') },
    });
    expect(await waiting).toMatchObject({ outcome: 'unconfirmed', error: { code: 'BUSY' } });
    silent = false;
    expect(await receiver.receive(real)).toMatchObject({ outcome: 'processed' });
    expect(service.received).toHaveLength(2);
  });

  test('a query is aborted after twice timeoutMs, and its delivery has ended before', async () => {
    fakeClock();
    const signals: (AbortSignal | undefined)[] = [];
    const client = {
      getTransaction(_id: string, { signal }: { signal?: AbortSignal | undefined } = {}) {
        signals.push(signal);
        return never();
      },
    };
    const ended = confirmWith(client, { timeoutMs: 1_000 })(transferSucceeded(), new AbortController());
    const rejected = expect(ended).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    await vi.advanceTimersByTimeAsync(1_999);
    await rejected;
    expect(signals.map((signal) => signal?.aborted)).toEqual([false]);
    await vi.advanceTimersByTimeAsync(1);
    expect(signals.map((signal) => signal?.aborted)).toEqual([true]);
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
  const { client, received } = await startKnowing({ ...real.data });
  const receiver = receiverOf({ confirm: confirmWith(client) });
  expect(await receiver.receive(real, { source: 'reconciliation' })).toMatchObject({ outcome: 'processed' });
  expect(received).toHaveLength(0);
  expect(await receiver.receive(transferSucceeded(), { source: 'queue' })).toMatchObject({ outcome: 'unconfirmed' });
  expect(received).toHaveLength(1);
});
