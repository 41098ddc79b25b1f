import request from 'supertest';
import express from 'express';
import { describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { memoryStore, transferCallbackReceiver, transferCallbackRouter } from 'transfer-callbacks';
import type { TransferCallback, TransferCallbackOutcome } from 'transfer-callbacks';
import { confirmWith, reconcileTransfers, type Transaction } from 'transfer-callbacks/client';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { later, receiverOf } from '../core/support.js';
import { final, gatedClient, refusal, startQueries, transfers, type Reply } from './support.js';
import { containing } from '../support/containing.js';
import type { ConfirmOptions } from '../../src/client/confirm.js';

const replying =
  (callback: TransferCallback, changes: Partial<Record<string, unknown>> = {}) =>
  (): Reply => [200, { data: { ...callback.data, ...changes } }];

describe('confirmWith', () => {
  test('hands the handler what was read, and nothing of what was posted', async () => {
    const posted = transferSucceeded({ id: 'tr-1', externalId: 'payout-1', walletNumber: '000' });
    const { client, received } = await startQueries(
      replying(posted, { walletNumber: '237670000000', provider: 'read back' }),
    );
    const seen: TransferCallback[] = [];
    const receiver = transferCallbackReceiver({
      store: memoryStore(),
      confirm: confirmWith(client),
      onSuccess: (callback) => seen.push(callback),
      onFailed: () => undefined,
    });
    expect((await receiver.receive(posted)).outcome).toBe('processed');
    expect(seen).toEqual([
      { event: 'transfer.success', data: { ...posted.data, walletNumber: '237670000000', provider: 'read back' } },
    ]);
    expect(received.map(({ url }) => url)).toEqual(['/transactions/tr-1']);
  });

  const success = transferSucceeded({ id: 'tr-1', externalId: 'payout-1', amount: 5, currency: 'XAF' });
  test.each<[string, (id: string) => Reply, string]>([
    ['is not final', replying(success, { status: 'PENDING' }), 'NOT_FINAL'],
    ['has another id', replying(success, { id: 'tr-2' }), 'UNCONFIRMED'],
    ['has another externalId', replying(success, { externalId: 'payout-2' }), 'UNCONFIRMED'],
    ['has failed', () => [200, transferFailed({ ...success.data, status: 'FAILED' }).data], 'UNCONFIRMED'],
    ['has another amount', replying(success, { amount: 5.01 }), 'UNCONFIRMED'],
    ['has another currency', replying(success, { currency: 'XOF' }), 'UNCONFIRMED'],
    ['is not as documented', replying(success, { provider: undefined }), 'UNREADABLE_RESPONSE'],
    ['is not known', () => refusal(404, 'Not found'), 'REFUSED'],
    ['cannot be found in the response', () => [200, []], 'UNREADABLE_RESPONSE'],
    ['cannot be read, because the service is down', () => (response) => response.destroy(), 'UNAVAILABLE'],
  ])('a transfer that %s is unconfirmed, with a 503', async (_title, reply, code) => {
    const { client } = await startQueries(reply);
    const handler = vi.fn();
    const outcomes: TransferCallbackOutcome[] = [];
    const app = express().use(
      transferCallbackRouter({
        store: memoryStore(),
        confirm: confirmWith(client),
        onSuccess: handler,
        onFailed: handler,
        onOutcome: (outcome) => outcomes.push(outcome),
        logger: false,
      }),
    );
    await request(app).post('/').send(success).expect(503).expect('Retry-After', '30');
    expect(outcomes).toEqual([
      expect.objectContaining({ outcome: 'unconfirmed', error: expect.objectContaining({ code }) as unknown }),
    ]);
    expect(handler).not.toHaveBeenCalled();
  });

  test('an error names every field that is not as documented', async () => {
    const { client } = await startQueries(replying(success, { provider: undefined, walletNumber: 5 }));
    await expect(confirmWith(client)(success, new AbortController())).rejects.toMatchObject({
      code: 'UNREADABLE_RESPONSE',
      message: containing('The transaction that was read is not as documented, at data.provider, data.walletNumber.'),
    });
  });

  test('a schema of your own applies to what is read, too', async () => {
    const facts = { id: z.string(), externalId: z.string(), amount: z.string(), currency: z.string() };
    const schema = z.discriminatedUnion('event', [
      z.object({ event: z.literal('transfer.success'), data: z.object({ ...facts, status: z.literal('SUCCESS') }) }),
      z.object({ event: z.literal('transfer.failed'), data: z.object({ ...facts, status: z.literal('FAILED') }) }),
    ]);
    const data = { id: 'tr-1', externalId: 'payout-1', status: 'SUCCESS', amount: '5.00', currency: 'XAF' };
    const { client } = await startQueries(() => [200, data]);
    const amounts: string[] = [];
    const receiver = transferCallbackReceiver({
      store: memoryStore(),
      schema,
      confirm: confirmWith(client, { schema }),
      onSuccess: (callback) => amounts.push(callback.data.amount),
      onFailed: () => undefined,
    });
    expect((await receiver.receive({ event: 'transfer.success', data })).outcome).toBe('processed');
    expect(amounts).toEqual(['5.00']);
  });

  test('reads no more than `concurrency` transfers at the same time; the others wait', async () => {
    let running = 0;
    let most = 0;
    const gate = later();
    const confirm = confirmWith(
      {
        async getTransaction(id): Promise<Transaction> {
          running += 1;
          most = Math.max(most, running);
          await gate.promise;
          running -= 1;
          return { ...transferSucceeded({ id }).data };
        },
      },
      { concurrency: 3 },
    );
    // As many as may wait.
    const confirmed = Array.from({ length: 15 }, (_, index) =>
      confirm(transferSucceeded({ id: `tr-${index}` }), new AbortController()),
    );
    gate.resolve();
    expect((await Promise.all(confirmed)).map(({ data }) => data.id)).toEqual(
      Array.from({ length: 15 }, (_, index) => `tr-${index}`),
    );
    expect(most).toBe(3);
  });

  test('a callback that waits ends with its deadline, and its transfer is not read', async () => {
    const client = gatedClient();
    const confirm = confirmWith(client, { concurrency: 1 });
    const { signal } = new AbortController();
    const deadline = new AbortController();
    const first = confirm(transferSucceeded({ id: 'first' }), { signal });
    const second = confirm(transferSucceeded({ id: 'second' }), { signal: deadline.signal });
    const third = confirm(transferSucceeded({ id: 'third' }), { signal });
    deadline.abort(new Error('too late'));
    await expect(second).rejects.toThrow('too late');
    await expect(confirm(transferSucceeded(), { signal: deadline.signal })).rejects.toThrow('too late');
    client.openAll();
    await Promise.all([first, third]);
    expect(client.read).toEqual(['first', 'third']);
  });

  test.each<[object, string]>([
    [{ concurrency: 0 }, 'Expected `concurrency` to be a whole number from 1 to 2147483647, got 0.'],
    [{ timeoutMs: 0 }, 'Expected `timeoutMs` to be a whole number from 1 to 1073741823, got 0.'],
    [{ timeoutMs: 2 ** 30 }, 'Expected `timeoutMs` to be a whole number from 1 to 1073741823, got 1073741824.'],
    [{ limit: 1 }, 'Unknown option `limit`; known are concurrency, timeoutMs, schema.'],
  ])('refuses the options %j', (options, message) => {
    const client = { getTransaction: () => Promise.reject(new Error('not asked')) };
    expect(() => confirmWith(client, options as ConfirmOptions)).toThrow(
      expect.objectContaining({ code: 'INVALID_ARGUMENT', message: containing(message) }),
    );
  });
});

test('a receiver with confirmWith reads each transfer once', async () => {
  const { client, received } = await startQueries(final);
  const receiver = receiverOf({ confirm: confirmWith(client) });
  expect(await reconcileTransfers({ client, receiver, pending: transfers(100) })).toMatchObject({ processed: 100 });
  expect(received).toHaveLength(100);
});
