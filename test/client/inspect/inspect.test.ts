import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { memoryStore, redisStore, type CallbackStore } from 'transfer-callbacks';
import {
  inspectTransfer,
  reconcileTransfers,
  transferService,
  type TransferInspection,
} from 'transfer-callbacks/client';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { later, otherService, receiverOf } from '../../core/support.js';
import { freePort } from '../../support/servers/port.js';
import { startRedis, type RedisServer } from '../../support/servers/redis.js';
import { startKnowing, serving } from '../support.js';
import { startMerchant } from './support.js';

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

function connect(port = redis.port): CallbackStore {
  const client = new Redis(port, '127.0.0.1');
  client.on('error', () => undefined);
  onTestFinished(() => {
    client.disconnect();
  });
  return redisStore(client);
}

/** Asks for both ids, and expects the same result for both. */
async function inspectBoth(ids: readonly [string, string], inspect: (id: string) => Promise<TransferInspection>) {
  const [one, other] = await Promise.all([inspect(ids[0]), inspect(ids[1])]);
  expect(other.verdict).toBe(one.verdict);
  expect(other.recordId).toBe(one.recordId);
  return one;
}

describe('a transfer', () => {
  test('whose handler runs is in progress', async () => {
    const [started, gate] = [later(), later()];
    const { transfer, inspect } = await startMerchant(connect(), async () => {
      started.resolve();
      await gate.promise;
    });
    const delivered = transfer('success-1');
    await started.promise;
    const found = await inspect('success-1');
    gate.resolve();
    await delivered;
    expect(found).toMatchObject({ verdict: 'in_progress', service: { state: 'final' }, record: { state: 'claimed' } });
    expect(found.meaning).toMatch(/^A delivery is being handled/);
    expect(found.advice).toMatch(/^Wait.*inspect it again/);
    expect((await inspect('success-1')).verdict).toBe('handled');
  });

  test('whose callback never came is missed, until it is reconciled', async () => {
    const { transfer, inspect, receiver } = await startMerchant(connect());
    const id = await transfer('no-callback-1');
    const found = await inspectBoth([id, 'no-callback-1'], inspect);
    expect(found).toMatchObject({
      verdict: 'missed',
      record: { state: 'free' },
      recordId: id,
      meaning: 'The transfer is final, and there is no record.',
      advice: expect.stringMatching(/^Reconcile it now, or leave it .* compare with your books first\./) as string,
    });
    if (found.verdict !== 'missed') expect.fail();
    const { event, transaction } = found.service;
    expect((await receiver.receive({ event, data: transaction })).outcome).toBe('processed');
    expect((await inspect(id)).verdict).toBe('handled');
  });

  test('that the service responds with 404 for is unknown, and undecided once it was handled: the address may be wrong', async () => {
    const { inspect, receiver } = await startMerchant(connect());
    const forged = transferSucceeded();
    expect(await inspect(forged.data.id)).toMatchObject({
      verdict: 'unknown',
      service: { state: 'unknown', error: { status: 404 } },
      record: { state: 'free' },
      recordId: forged.data.id,
      advice: expect.stringContaining('Do not conclude that the transfer has failed') as string,
    });
    await receiver.receive(forged);
    expect(await inspect(forged.data.id)).toMatchObject({
      verdict: 'undecided',
      service: { state: 'unknown' },
      record: { state: 'handled' },
      meaning: 'The handler has succeeded, but the service responded with 404.',
      advice: expect.stringMatching(/^Check the address and the API key of the service first/) as string,
    });
  });

  test('that the service cannot be asked about is undecided, and its record is shown', async () => {
    const { transfer, inspect } = await startMerchant(connect());
    const id = await transfer('success-1');
    const service = transferService({ baseUrl: `http://127.0.0.1:${await freePort()}`, apiKey: 'k', apiSecret: 's' });
    expect(await inspect(id, { service })).toMatchObject({
      verdict: 'undecided',
      service: { state: 'unread', error: { code: 'UNAVAILABLE' } },
      record: { state: 'handled' },
      meaning: 'Nothing can be concluded: the service could not be read.',
      advice: expect.stringContaining('counts only if that is the id of the service') as string,
    });
  });

  test('whose record cannot be read is undecided, and what the service responds is shown', async () => {
    const { transfer, inspect } = await startMerchant(connect());
    const id = await transfer('success-1');
    expect(await inspect(id, { store: connect(await freePort()), storeTimeoutMs: 500 })).toMatchObject({
      verdict: 'undecided',
      service: { state: 'final' },
      record: { state: 'unread', error: expect.any(Error) as Error },
      meaning: 'Nothing can be concluded: the record could not be read.',
      advice:
        'Check that the store can be reached, and that it is the one of your app. Inspect it again when both can be read.',
    });
  });
});

describe('an event of onOther', () => {
  /** An app that has handled the event. */
  async function handleEvent() {
    const store = memoryStore();
    const receiver = receiverOf({ store, service: otherService as never, onOther: () => undefined });
    const { id = '' } = await receiver.receive({ type: 'charge.paid', data: { id: '7' } });
    return { id, receiver };
  }

  test('that the service responds with 404 for is undecided, and its record is shown', async () => {
    const { id, receiver } = await handleEvent();
    const { client } = await startKnowing();
    expect(await inspectTransfer({ id, receiver: serving(receiver, client) })).toMatchObject({
      verdict: 'undecided',
      service: { state: 'unread' },
      record: { state: 'handled', fingerprint: '[null,null,null,null]' },
    });
  });

  test('is not taken for a transfer with its id', async () => {
    const { id, receiver } = await handleEvent();
    const callback = transferSucceeded({ id });
    const { client } = await startKnowing({ ...callback.data });
    const asked = { id, receiver: serving(receiver, client) };
    expect(await inspectTransfer(asked)).toMatchObject({ verdict: 'missed', recordId: id });
    const pending = [{ id, createdAt: 0 }];
    expect(await reconcileTransfers({ receiver: serving(receiver, client), pending })).toMatchObject({ processed: 1 });
    expect(await receiver.receive(callback)).toMatchObject({ outcome: 'duplicate', id });
    expect(await inspectTransfer(asked)).toMatchObject({ verdict: 'handled', recordId: id });
  });
});
