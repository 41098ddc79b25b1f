import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { z } from 'zod';
import {
  memoryStore,
  postgresStore,
  redisStore,
  transferCallbackListener,
  transferCallbackReceiver,
  type CallbackStore,
} from 'transfer-callbacks';
import { transferClient, transferFate, type FateOptions, type TransferFate } from 'transfer-callbacks/client';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { later, receiverOf } from '../core/support.js';
import { startSandbox } from '../sandbox/support.js';
import { serve } from '../support/serve.js';
import { freePort } from '../support/port.js';
import { startPostgres, type PostgresServer } from '../support/postgres.js';
import { startRedis, type RedisServer } from '../support/redis.js';

let redis: RedisServer;
let postgres: PostgresServer;

beforeAll(async () => {
  [redis, postgres] = await Promise.all([startRedis(), startPostgres()]);
  await postgresStore(postgres.pool()).migrate();
});

afterAll(async () => {
  await Promise.all([redis.stop(), postgres.stop()]);
});

function connectRedis(port: number): Redis {
  const client = new Redis(port, '127.0.0.1');
  client.on('error', () => undefined);
  onTestFinished(() => {
    client.disconnect();
  });
  return client;
}

const stores: Record<
  string,
  () => { store: CallbackStore<unknown>; unreachable: () => Promise<CallbackStore<unknown>> }
> = {
  Redis: () => ({
    store: redisStore(connectRedis(redis.port)),
    unreachable: async () => redisStore(connectRedis(await freePort())),
  }),
  PostgreSQL: () => ({
    store: postgresStore(postgres.pool()),
    unreachable: async () => postgresStore(postgres.pool({ connectionString: undefined, port: await freePort() })),
  }),
};

/** The sandbox's service, and an endpoint that handles its callbacks with `handler`, on one store. */
async function startMerchant(
  store: CallbackStore<unknown>,
  handler: () => unknown = () => undefined,
  finalAfterMs = 0,
) {
  const receiver = transferCallbackReceiver({ store, onSuccess: handler, onFailed: handler, logger: false });
  const { url, close } = await serve(transferCallbackListener({ receiver }));
  onTestFinished(close);
  // Other runs have other ids: the stores outlive a test.
  const sandbox = await startSandbox({ finalAfterMs, seed: crypto.getRandomValues(new Uint32Array(1))[0] });
  const client = transferClient({ baseUrl: sandbox.baseUrl, ...sandbox.keys.valid });
  return {
    receiver,
    client,
    /** Creates a transfer, and resolves with its id once its callback was delivered, unless it stays open. */
    transfer: async (externalId: string): Promise<string> => {
      await client.createTransfer({ callbackUrl: url, externalId, amount: 250 });
      if (finalAfterMs === 0) await sandbox.idle();
      return String(sandbox.transfers().find((each) => each.externalId === externalId)?.id);
    },
    fate: (id: string, options: Partial<FateOptions> = {}) => transferFate({ client, store, id, ...options }),
  };
}

/** Asks for both ids, and expects the same fate of both. */
async function fateOfBoth(ids: readonly [string, string], fate: (id: string) => Promise<TransferFate>) {
  const [one, other] = await Promise.all([fate(ids[0]), fate(ids[1])]);
  expect(other.verdict).toBe(one.verdict);
  expect(other.recordId).toBe(one.recordId);
  return one;
}

describe.each(Object.entries(stores))('with %s, a transfer', (_name, open) => {
  test('that the service has not finished is open', async () => {
    const { transfer, fate } = await startMerchant(open().store, undefined, 3_600_000);
    const id = await transfer('success-1');
    expect(await fateOfBoth([id, 'success-1'], fate)).toMatchObject({
      verdict: 'open',
      service: { state: 'open', transaction: { id, externalId: 'success-1' } },
      record: { state: 'free' },
      recordId: id,
      meaning: 'The service has not finished this transfer.',
    });
  });

  test('whose handler runs is in progress', async () => {
    const [started, gate] = [later(), later()];
    const { transfer, fate } = await startMerchant(open().store, async () => {
      started.resolve();
      await gate.promise;
    });
    const delivered = transfer('success-1');
    await started.promise;
    const found = await fate('success-1');
    gate.resolve();
    await delivered;
    expect(found).toMatchObject({ verdict: 'in_progress', service: { state: 'final' }, record: { state: 'claimed' } });
    expect(found.meaning).toMatch(/^A delivery is being handled/);
    expect(found.advice).toMatch(/^Wait.*inspect it again/);
    expect((await fate('success-1')).verdict).toBe('handled');
  });

  test('whose callback was handled is handled', async () => {
    const { transfer, fate } = await startMerchant(open().store);
    for (const externalId of ['success-1', 'failed-2']) {
      const id = await transfer(externalId);
      expect(await fateOfBoth([id, externalId], fate)).toMatchObject({
        verdict: 'handled',
        service: { state: 'final', finalAt: expect.any(Date) as Date },
        record: { state: 'settled', fingerprint: expect.stringContaining(externalId) as string },
        recordId: id,
      });
    }
  });

  test('whose callback never came is missed, until it is reconciled', async () => {
    const { transfer, fate, receiver } = await startMerchant(open().store);
    const id = await transfer('no-callback-1');
    const found = await fateOfBoth([id, 'no-callback-1'], fate);
    expect(found).toMatchObject({ verdict: 'missed', record: { state: 'free' }, recordId: id });
    if (found.verdict !== 'missed') expect.fail();
    const { event, transaction } = found.service;
    expect((await receiver.receive({ event, data: transaction })).outcome).toBe('processed');
    expect((await fate(id)).verdict).toBe('handled');
  });

  test('that is final for longer than records are kept may have been forgotten', async () => {
    const { transfer, fate } = await startMerchant(open().store);
    const id = await transfer('no-callback-1');
    await vi.waitFor(async () => {
      expect(await fate(id, { retentionMs: 1 })).toMatchObject({
        verdict: 'missed_or_forgotten',
        advice: expect.stringContaining('Compare the transfer with your own books before') as string,
      });
    });
  });

  test('that was handled with other facts than the service gives is in conflict', async () => {
    const { transfer, fate, receiver } = await startMerchant(open().store);
    const id = await transfer('no-callback-1');
    const forged = transferFailed({ id, externalId: 'no-callback-1', amount: 250 });
    expect((await receiver.receive(forged)).outcome).toBe('processed');
    expect(await fate(id)).toMatchObject({
      verdict: 'conflict',
      service: { state: 'final', transaction: { status: 'SUCCESS' } },
      record: { state: 'settled', fingerprint: expect.stringContaining('FAILED') as string },
    });
  });

  test('that was handled although the service calls it open is unfounded', async () => {
    const { transfer, fate } = await startMerchant(open().store);
    const id = await transfer('query-lags-1');
    expect(await fate(id)).toMatchObject({
      verdict: 'unfounded',
      service: { state: 'open' },
      record: { state: 'settled' },
      advice: expect.stringContaining('a query may lag') as string,
    });
  });

  test('that was handled although the service does not know it is unfounded', async () => {
    const { fate, receiver } = await startMerchant(open().store);
    const forged = transferSucceeded();
    await receiver.receive(forged);
    expect(await fate(forged.data.id)).toMatchObject({
      verdict: 'unfounded',
      service: { state: 'unknown', error: { status: 404 } },
      record: { state: 'settled' },
      recordId: forged.data.id,
    });
  });

  test('that neither the service nor the store knows is unknown, which does not mean failed', async () => {
    const { fate } = await startMerchant(open().store);
    expect(await fate('unheard-of')).toMatchObject({
      verdict: 'unknown',
      service: { state: 'unknown' },
      record: { state: 'free' },
      advice: expect.stringContaining('Do not conclude that the transfer has failed') as string,
    });
  });

  test('that the service cannot be asked about is undecided, and its record is shown', async () => {
    const { transfer, fate } = await startMerchant(open().store);
    const id = await transfer('success-1');
    const client = transferClient({ baseUrl: `http://127.0.0.1:${await freePort()}`, apiKey: 'k', apiSecret: 's' });
    expect(await fate(id, { client })).toMatchObject({
      verdict: 'undecided',
      service: { state: 'unread', error: { code: 'UNAVAILABLE' } },
      record: { state: 'settled' },
      meaning: 'Nothing can be concluded: the service could not be read.',
      advice: expect.stringContaining('counts only if that is the id of the service') as string,
    });
  });

  test('whose record cannot be read is undecided, and what the service says is shown', async () => {
    const { store, unreachable } = open();
    const { transfer, fate } = await startMerchant(store);
    const id = await transfer('success-1');
    expect(await fate(id, { store: await unreachable(), storeTimeoutMs: 500 })).toMatchObject({
      verdict: 'undecided',
      service: { state: 'final' },
      record: { state: 'unread', error: expect.any(Error) as Error },
      meaning: 'Nothing can be concluded: the record could not be read.',
      advice: 'Inspect it again when both can be read.',
    });
  });
});

const callback = transferSucceeded({
  id: 'tr-1',
  externalId: 'payout-1',
  amount: 5,
  timestamp: new Date().toISOString(),
});
const record = '["SUCCESS",5,"XAF","payout-1"]';

/** The fate of a transfer where the service responds with `data` and the store has this record. */
function fateWith(data: object, found: Awaited<ReturnType<NonNullable<CallbackStore['read']>>>, options: object = {}) {
  return transferFate({
    id: 'tr-1',
    client: { getTransaction: () => Promise.resolve({ ...callback.data, ...data }) },
    store: { read: () => Promise.resolve(found) },
    ...options,
  });
}

describe('what is compared', () => {
  test.each<[string, object, string, string]>([
    ['the same facts', {}, record, 'handled'],
    ['another amount', { amount: 6 }, record, 'conflict'],
    ['another currency', { currency: 'XOF' }, record, 'conflict'],
    ['another status', { status: 'FAILED' }, record, 'conflict'],
    ['another externalId', { externalId: 'payout-2' }, record, 'conflict'],
    ['facts that the service leaves out', { amount: undefined, currency: undefined }, record, 'handled'],
    ['a record that cannot be read as facts', {}, 'facts of a store of your own', 'conflict'],
  ])('%s: %j and %j is %s', async (_title, data, fingerprint, verdict) => {
    expect((await fateWith(data, { state: 'settled', fingerprint })).verdict).toBe(verdict);
  });

  test('is what the schema of the receiver makes of the transfer', async () => {
    const schema = z.discriminatedUnion('event', [
      z.object({
        event: z.literal('transfer.success'),
        data: z.object({
          ...{ id: z.string(), externalId: z.string(), currency: z.string(), status: z.literal('SUCCESS') },
          amount: z.string().transform(Number),
        }),
      }),
    ]);
    const settled = { state: 'settled', fingerprint: record } as const;
    expect((await fateWith({ amount: '5.00' }, settled)).verdict).toBe('conflict');
    expect((await fateWith({ amount: '5.00' }, settled, { schema })).verdict).toBe('handled');
    expect((await fateWith({ amount: 5 }, settled, { schema })).verdict).toBe('handled'); // It does not fit the schema.
  });

  test.each([undefined, 'soon', 5])('a transfer whose timestamp is %j may have been forgotten', async (timestamp) => {
    const fate = await fateWith({ timestamp }, { state: 'free' });
    expect(fate).toMatchObject({ verdict: 'missed_or_forgotten', service: { finalAt: undefined } });
  });

  test('the retention is 7 days, that of the receiver, or the one that is given', async () => {
    const timestamp = new Date(Date.now() - 6 * 86_400_000).toISOString();
    const inspect = () => Promise.resolve({ state: 'free' as const });
    const receiver = { inspect, options: { retentionMs: 86_400_000 } };
    const verdicts = await Promise.all(
      [{}, { store: undefined, receiver }, { store: undefined, receiver, retentionMs: 8 * 86_400_000 }].map(
        async (options) => (await fateWith({ timestamp }, { state: 'free' }, options)).verdict,
      ),
    );
    expect(verdicts).toEqual(['missed', 'missed_or_forgotten', 'missed']);
  });
});

describe('what is read', () => {
  test('a claim that tells its holder and its lease is advised with both', async () => {
    const claimed = { state: 'claimed', by: 'payouts-7f9c, process 41', leaseLeftMs: 11_500 } as const;
    expect(await fateWith({ status: 'PENDING' }, claimed)).toMatchObject({
      verdict: 'in_progress',
      record: claimed,
      meaning: 'A delivery is being handled by payouts-7f9c, process 41.',
      advice: 'Wait 12 s, and inspect it again. If its holder has died, the claim is free by then.',
    });
  });

  test('a transfer that becomes final between the two readings is not called unfounded', async () => {
    const statuses = ['PENDING', 'SUCCESS'];
    const getTransaction = vi.fn(() => Promise.resolve({ ...callback.data, status: statuses.shift() ?? '' }));
    const settled = { state: 'settled', fingerprint: record } as const;
    expect(await fateWith({}, settled, { client: { getTransaction } })).toMatchObject({
      verdict: 'handled',
      service: { state: 'final' },
    });
    expect(getTransaction).toHaveBeenCalledTimes(2);
  });

  test('one half is enough to ask, and not to conclude', async () => {
    expect(await fateWith({}, { state: 'free' }, { store: undefined })).toMatchObject({
      verdict: 'undecided',
      service: { state: 'final' },
      record: { state: 'unread', error: undefined },
      meaning: 'Nothing can be concluded: the record was not read.',
    });
    expect(await fateWith({}, { state: 'free' }, { client: undefined })).toMatchObject({
      verdict: 'undecided',
      service: { state: 'unread', error: undefined },
      record: { state: 'free' },
      meaning: 'Nothing can be concluded: the service was not read.',
    });
  });

  test('an id that the service cannot be asked about leaves the record', async () => {
    const client = transferClient({ baseUrl: 'http://127.0.0.1:1', apiKey: 'k', apiSecret: 's' });
    const settled = { state: 'settled', fingerprint: record } as const;
    expect(await fateWith({}, settled, { client, id: 'a/b' })).toMatchObject({
      verdict: 'undecided',
      service: { state: 'unread', error: { code: 'INVALID_ID' } },
      record: settled,
    });
  });

  test('a store that does not reply is given up after storeTimeoutMs', async () => {
    const store = { read: () => new Promise<never>(() => undefined) };
    expect(await fateWith({}, { state: 'free' }, { store, storeTimeoutMs: 50 })).toMatchObject({
      verdict: 'undecided',
      record: { state: 'unread', error: { code: 'STORE_TIMEOUT', message: 'The store did not reply within 50 ms.' } },
    });
  });

  test('a store from JavaScript that resolves with nothing has no record that could be read', async () => {
    const store = { read: () => Promise.resolve(undefined as never) };
    expect(await fateWith({}, { state: 'free' }, { store })).toMatchObject({
      verdict: 'undecided',
      record: { state: 'unread', error: { message: 'The store resolved with no record.' } },
    });
  });

  test.each(['service', 'store'])('an abort while the %s is read rejects with its reason', async (half) => {
    const controller = new AbortController();
    const never = () => {
      setImmediate(() => {
        controller.abort(new Error('the pod is leaving'));
      });
      return new Promise<never>(() => undefined);
    };
    const client = {
      getTransaction: (_id: string, { signal }: { signal?: AbortSignal } = {}) =>
        Promise.race([never(), new Promise<never>((_, reject) => signal?.addEventListener('abort', reject))]),
    };
    const halves = half === 'service' ? { client } : { store: { read: never } };
    const fate = fateWith({}, { state: 'free' }, { ...halves, signal: controller.signal });
    await expect(fate).rejects.toThrow('the pod is leaving');
  });
});

test('a receiver is asked through its inspect', async () => {
  const inspect = vi.fn(() => Promise.resolve({ state: 'free' as const, here: { sinceMs: 5 } }));
  const fate = await fateWith({}, { state: 'free' }, { store: undefined, receiver: { inspect } });
  expect(fate).toMatchObject({ verdict: 'missed', record: { here: { sinceMs: 5 } } });
  expect(inspect).toHaveBeenCalledWith('tr-1');
});

test('a memory store is read in its own process', async () => {
  const store = memoryStore();
  await receiverOf({ store }).receive(callback);
  expect((await fateWith({}, { state: 'free' }, { store })).verdict).toBe('handled');
});

test.each<[object, string]>([
  [{ id: '' }, 'Expected `id` to be the id or externalId of a transfer, got "".'],
  [{ client: undefined, store: undefined }, 'Expected `client` to be given, or `store` or `receiver`, got undefined.'],
  [{ client: {} }, 'Expected `client` to be made by transferClient(), got an object.'],
  [{ store: { claim: () => undefined } }, 'Expected `store` to be a store that has `read`, got an object.'],
  [{ receiver: {} }, 'Expected `store` to be left out beside `receiver`, which has it, got an object.'],
  [{ store: undefined, receiver: {} }, 'Expected `receiver` to be made by transferCallbackReceiver(), got an object.'],
  [{ retentionMs: 0 }, 'Expected `retentionMs` to be a whole number from 1 to 9007199254740991, got 0.'],
  [{ storeTimeoutMs: 0 }, 'Expected `storeTimeoutMs` to be a whole number from 1 to 2147483647, got 0.'],
  [
    { pending: [] },
    'Unknown option `pending`; known are id, client, store, receiver, retentionMs, storeTimeoutMs, schema, signal.',
  ],
])('the options %j are refused', async (changes, message) => {
  await expect(fateWith({}, { state: 'free' }, changes)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message });
});
