import { getEventListeners } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test, vi } from 'vitest';
import type { TransferCallback } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { fakeClock, receiverOf } from '../core/support.js';
import { gatedClient, startKnowing, startService, type Reply, serviceOf } from './support.js';
import { containing } from '../support/helpers/containing.js';
import type { ConfirmLimits } from '../../src/core/payout-service.js';

const confirmOf = (client: Parameters<typeof serviceOf>[0], limits: ConfirmLimits) =>
  serviceOf(client).makeConfirm?.(limits) ?? expect.fail();

/** Returns a function that confirms the callback of an id, with one query at a time. */
function confirmInTurn(client: Parameters<typeof serviceOf>[0]) {
  const confirm = confirmOf(client, { concurrency: 1 });
  const callback = transferSucceeded();
  return (id: string, { signal } = new AbortController()): Promise<unknown> =>
    confirm({ ...callback, data: { ...callback.data, id } }, { signal });
}

describe('confirm: true', () => {
  test('hands the handler what was read, and nothing of what was posted', async () => {
    const posted = transferSucceeded({ id: 'tr-1', externalId: 'payout-1', walletNumber: '000' });
    const read = { ...posted.data, walletNumber: '237670000000', provider: 'read back' };
    const { client, received } = await startKnowing(read);
    const seen: TransferCallback[] = [];
    const receiver = receiverOf({ service: client, confirm: true, onSuccess: (callback) => seen.push(callback) });
    expect((await receiver.receive(posted)).outcome).toBe('processed');
    expect(seen).toEqual([{ event: 'transfer.success', data: read }]);
    expect(received.map(({ url }) => url)).toEqual(['/transactions/tr-1']);
  });

  test('a callback that reconciliation has just read is not read again', async () => {
    const real = transferSucceeded();
    const { client, received } = await startKnowing({ ...real.data });
    const receiver = receiverOf({ service: client, confirm: true });
    expect(await receiver.receive(real, { source: 'reconciliation' })).toMatchObject({ outcome: 'processed' });
    expect(received).toHaveLength(0);
    expect(await receiver.receive(transferSucceeded(), { source: 'queue' })).toMatchObject({ outcome: 'unconfirmed' });
    expect(received).toHaveLength(1);
  });

  test.each<[object, string]>([
    [{ concurrency: 0 }, 'Expected `concurrency` to be a whole number from 1 to 2147483647, got 0.'],
    [{ timeoutMs: 0 }, 'Expected `timeoutMs` to be a whole number from 1 to 1073741823, got 0.'],
    [{ timeoutMs: 2 ** 30 }, 'Expected `timeoutMs` to be a whole number from 1 to 1073741823, got 1073741824.'],
  ])('refuses the options %j', (options, message) => {
    const client = serviceOf({ getTransaction: () => Promise.reject(new Error('not asked')) });
    expect(() => receiverOf({ service: client, confirm: options as ConfirmLimits })).toThrow(
      expect.objectContaining({ code: 'INVALID_ARGUMENT', message: containing(message) }),
    );
  });
});

describe('the callbacks that confirm lets wait', () => {
  test('are four for each of `concurrency` queries, the next one is BUSY, and none leaves a timer or a listener', async () => {
    fakeClock();
    const client = gatedClient();
    const confirm = confirmOf(client, { concurrency: 3 });
    const ids = Array.from({ length: 15 }, (_, index) => `tr-${index}`);
    const deliveries = ids.map((id) => ({ id, signal: new AbortController().signal }));
    const accepted = deliveries.map(({ id, signal }) => confirm(transferSucceeded({ id }), { signal }));
    await expect(confirm(transferSucceeded(), new AbortController())).rejects.toMatchObject({
      code: 'BUSY',
      message: containing('Too many callbacks are waiting to be confirmed.'),
    });
    expect(client.read).toHaveLength(3);
    client.openAll();
    const found = (await Promise.all(accepted)) as TransferCallback[];
    expect(found.map(({ data }) => data.id)).toEqual(ids);
    expect(vi.getTimerCount()).toBe(0);
    expect(deliveries.flatMap(({ signal }) => getEventListeners(signal, 'abort'))).toEqual([]);
  });

  test('go first when they come again after BUSY, if they are of the last 5 000 to 10 000', async () => {
    const client = gatedClient();
    const confirm = confirmInTurn(client);
    const accepted = Array.from({ length: 5 }, (_, index) => confirm(`forged-${index}`));
    for (let index = 0; index < 10_001; index += 1) {
      await confirm(`rejected-${index}`).catch(() => undefined);
    }
    await expect(confirm('rejected-0')).rejects.toMatchObject({ code: 'BUSY' });
    accepted.push(confirm('rejected-10000'), confirm('rejected-5000'));
    client.openAll();
    await Promise.all(accepted);
    expect(client.read.slice(0, 3)).toEqual(['forged-0', 'rejected-10000', 'rejected-5000']);
  });

  test('end with their deadline, and their transfer is not read', async () => {
    const client = gatedClient();
    const confirm = confirmInTurn(client);
    const deadline = new AbortController();
    const first = confirm('first');
    const second = confirm('second', deadline);
    const third = confirm('third');
    deadline.abort(new Error('too late'));
    await expect(second).rejects.toThrow('too late');
    await expect(confirm('fourth', deadline)).rejects.toThrow('too late');
    client.openAll();
    await Promise.all([first, third]);
    await confirm('fifth');
    expect(client.read).toEqual(['first', 'third', 'fifth']);
  });
});

describe('confirm and a service that does not respond', () => {
  test('the delivery is unconfirmed after timeoutMs, and the slot is free again after as much again', async () => {
    let silent = true;
    const real = transferSucceeded();
    const service = await startService((): Reply => (silent ? () => undefined : [200, { data: real.data }]));
    const receiver = receiverOf({ service: service.client, confirm: { concurrency: 1, timeoutMs: 1_000 } });

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

  test('a delivery that ends early leaves its slot to the query until that has ended', async () => {
    const client = gatedClient();
    const { read } = client;
    const confirm = confirmInTurn(client);
    const delivery = new AbortController();
    const first = confirm('first', delivery);
    const second = confirm('second');
    delivery.abort(new Error('the delivery has ended'));
    await expect(first).rejects.toThrow('the delivery has ended');
    await pause(50); // Time enough for a second query, were the slot free.
    expect(read).toEqual(['first']);
    client.openAll();
    await second;
    expect(read).toEqual(['first', 'second']);
  });
});
