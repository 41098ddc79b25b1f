import { describe, expect, test } from 'vitest';
import { memoryStore, redisStore, transferCallbackListener } from 'transfer-callbacks';
import { inspectTransfer, reconcileTransfers, transferService } from 'transfer-callbacks/client';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { otherService, receiverOf } from '../../core/support.js';
import { startSandbox } from '../../../sandbox/test/service/support.js';
import { freePort } from '../../support/servers/port.js';
import { connectForTest, startRedisForFile } from '../../support/servers/redis-for-file.js';
import { serveForTest } from '../../support/servers/serve-for-test.js';
import { startKnowing } from '../support.js';

const own = startRedisForFile();

/** The sandbox's service, and an endpoint that handles its callbacks, on Redis. */
async function startMerchant() {
  const store = redisStore(own.redis);
  // Other runs have other ids: the records outlive a test.
  const sandbox = await startSandbox({ finalAfterMs: 0, seed: crypto.getRandomValues(new Uint32Array(1))[0] });
  const client = transferService({ baseUrl: sandbox.baseUrl, ...sandbox.keys.valid });
  const receiver = receiverOf({ store, service: client });
  const url = await serveForTest(transferCallbackListener({ receiver }));
  return {
    receiver,
    client,
    /** Creates a transfer, and resolves with its id once its callback was delivered. */
    transfer: async (externalId: string): Promise<string> => {
      await client.createTransfer({ callbackUrl: url, externalId, amount: 250 });
      await sandbox.idle();
      return String(sandbox.transfers().find((each) => each.externalId === externalId)?.id);
    },
    inspect: (id: string, changes: object = {}) =>
      inspectTransfer({ id, receiver: receiverOf({ store, service: client, ...changes }) }),
  };
}

describe('a transfer', () => {
  test('whose callback never came is missed, until it is reconciled', async () => {
    const { transfer, inspect, receiver } = await startMerchant();
    const id = await transfer('no-callback-1');
    const found = await inspect(id);
    expect(await inspect('no-callback-1')).toMatchObject({ verdict: 'missed', recordId: id });
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

  test('that the service cannot be asked about is undecided, and its record is shown', async () => {
    const { transfer, inspect } = await startMerchant();
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
    const { transfer, inspect } = await startMerchant();
    const id = await transfer('success-1');
    const store = redisStore(connectForTest(await freePort()));
    expect(await inspect(id, { store, storeTimeoutMs: 500 })).toMatchObject({
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
    return { id, store };
  }

  test('that the service responds with 404 for is undecided, and its record is shown', async () => {
    const { id, store } = await handleEvent();
    const { client: service } = await startKnowing();
    expect(await inspectTransfer({ id, receiver: receiverOf({ store, service }) })).toMatchObject({
      verdict: 'undecided',
      service: { state: 'unread' },
      record: { state: 'handled', fingerprint: '[null,null,null,null]' },
    });
  });

  test('is not taken for a transfer with its id', async () => {
    const { id, store } = await handleEvent();
    const callback = transferSucceeded({ id });
    const { client: service } = await startKnowing({ ...callback.data });
    const receiver = receiverOf({ store, service });
    expect(await inspectTransfer({ id, receiver })).toMatchObject({ verdict: 'missed', recordId: id });
    const pending = [{ id, createdAt: 0 }];
    expect(await reconcileTransfers({ receiver, pending })).toMatchObject({ processed: 1 });
    expect(await receiver.receive(callback)).toMatchObject({ outcome: 'duplicate', id });
    expect(await inspectTransfer({ id, receiver })).toMatchObject({ verdict: 'handled', recordId: id });
  });
});
