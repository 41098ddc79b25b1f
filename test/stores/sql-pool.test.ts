import { randomUUID } from 'node:crypto';
import { pgStore } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { expect, test, vi } from 'vitest';
import { later } from '../core/support.js';
import { containing } from '../support/helpers/containing.js';
import { startLedgerForFile } from '../support/servers/postgres-for-file.js';
import { book, poolBehindProxy, receiverOn } from '../support/servers/postgres.js';
import { claimFree, requestOf } from './support.js';

const ledger = startLedgerForFile({ max: 20 });

test.each([
  ['an open transaction', 'SELECT 1'],
  ['a failed transaction', 'SELECT 1/0'],
])(
  'a client that other code releases with %s is named and ended, and nothing of it is committed',
  async (_with, last) => {
    const callback = transferSucceeded();
    const { id } = callback.data;
    const own = ledger.server.pool({ max: 1 });
    const client = await own.connect();
    for (const statement of ['BEGIN', `INSERT INTO ledger VALUES ('${id}', 'half')`, last]) {
      await client.query(statement).catch(() => undefined);
    }
    client.release();
    const receiver = receiverOn(own);
    expect(await receiver.receive(callback)).toMatchObject({
      outcome: 'store_unavailable',
      error: {
        code: 'STORE_REPLY_UNEXPECTED',
        message: containing(
          'A client of the pool was not usable: other code had begun a transaction on it and not ended it. It was rolled back.',
        ),
      },
    });
    expect(await ledger.bookings(id)).toEqual([]);
    expect((await receiver.receive(callback)).outcome).toBe('processed');
    expect(await ledger.bookings(id)).toEqual(['SUCCESS']);
  },
);

test('a client that is released twice does not turn a commit into a failure', async () => {
  const own = ledger.server.pool({ max: 1 });
  const receiver = receiverOn(own, {
    onSuccess: async (given, { tx }) => {
      await book(given, { tx });
      // Past `tx`, as an APM or a plugin of the pool may do it.
      const { _clients: clients } = own as unknown as { _clients: { release(destroy: boolean): void }[] };
      clients[0]?.release(true);
    },
  });
  const callback = transferSucceeded();
  const { outcome } = await receiver.receive(callback);
  const booked = await ledger.bookings(callback.data.id);
  expect([outcome, booked]).toEqual(booked.length === 1 ? ['processed', ['SUCCESS']] : ['store_unavailable', []]);
});

test('a pool whose connect only returns a promise works', async () => {
  const store = pgStore({ connect: () => ledger.pool.connect() });
  const id = randomUUID();
  const claim = await claimFree(store, {}, id);
  await claim.settle();
  expect((await store.claim(id, requestOf('b'))).state).toBe('handled');
  const failing = { connect: () => Promise.reject(new Error('no client today')) };
  await expect(pgStore(failing).claim(id, requestOf('a'))).rejects.toThrow('no client today');
});

test('a burst of 600 on a pool of 10 is processed at the first attempt, and so are copies of it', async () => {
  const own = ledger.server.pool({ max: 10 });
  const receiver = receiverOn(own, {
    inFlightWaitMs: 25_000,
    async onSuccess(...given) {
      await book(...given);
      await new Promise((resolve) => setTimeout(resolve, 20));
    },
  });
  const callbacks = Array.from({ length: 600 }, () => transferSucceeded());
  const outcomes = await Promise.all([...callbacks, ...callbacks].map((callback) => receiver.receive(callback)));
  const names = outcomes.map(({ outcome }) => outcome);
  expect(names.slice(0, 600)).toEqual(callbacks.map(() => 'processed'));
  expect(names.slice(600)).toEqual(callbacks.map(() => 'duplicate'));
  expect([own.waitingCount, own.idleCount]).toEqual([0, own.totalCount]);
});

test('deliveries end within their time when the pool is exhausted, and the pool recovers', async () => {
  const small = ledger.server.pool({ max: 2 });
  const goOn = later();
  const receiver = receiverOn(small, { inFlightWaitMs: 200, storeTimeoutMs: 1_000, onSuccess: () => goOn.promise });
  const holding = [receiver.receive(transferSucceeded()), receiver.receive(transferSucceeded())];
  await vi.waitFor(() => {
    expect(small.totalCount - small.idleCount).toBe(2);
  });
  const refused = await Promise.all(Array.from({ length: 50 }, () => receiver.receive(transferFailed())));
  expect(new Set(refused.map(({ outcome }) => outcome))).toEqual(new Set(['store_unavailable']));
  expect(Math.max(...refused.map(({ durationMs }) => durationMs))).toBeLessThan(9_000); // The default of inFlightWaitMs is 10 000.
  goOn.resolve();
  expect((await Promise.all(holding)).map(({ outcome }) => outcome)).toEqual(['processed', 'processed']);
  await vi.waitFor(() => {
    expect(small.waitingCount).toBe(0);
  });
  expect((await receiver.receive(transferFailed())).outcome).toBe('processed');
});

test('copies that wait for a handler of another process hold no client of the pool', async () => {
  const small = ledger.server.pool({ max: 2 });
  const callback = transferSucceeded();
  const goOn = later();
  const running = receiverOn(ledger.pool, {
    async onSuccess(...given) {
      await goOn.promise;
      await book(...given);
    },
  }).receive(callback);
  await vi.waitFor(async () => {
    expect((await pgStore(ledger.pool).read(callback.data.id)).state).toBe('claimed');
  });
  const receivers = Array.from({ length: 10 }, () => receiverOn(small));
  const copies = Promise.all(receivers.map((receiver) => receiver.receive(callback)));
  // Another callback gets through between them.
  expect((await receiverOn(small).receive(transferFailed())).outcome).toBe('processed');
  goOn.resolve();
  expect((await running).outcome).toBe('processed');
  expect(new Set((await copies).map(({ outcome }) => outcome))).toEqual(new Set(['duplicate']));
  expect(await ledger.bookings(callback.data.id)).toEqual(['SUCCESS']);
});

test('a claim queues for a client up to queueMs and then rejects, and a client that comes later goes back', async () => {
  const own = ledger.server.pool({ max: 1 });
  const store = pgStore(own);
  const holder = await own.connect();
  const claims = Array.from({ length: 5_000 }, () =>
    store.claim(randomUUID(), { ...requestOf('a'), timeoutMs: 5, queueMs: 99.6193 }),
  );
  for (const claim of await Promise.allSettled(claims)) {
    expect(claim).toMatchObject({
      status: 'rejected',
      reason: { code: 'STORE_TIMEOUT', message: containing('The pool had no client within 100 ms.') },
    });
  }
  const queued = claimFree(store, { timeoutMs: 5_000, queueMs: 20_000 });
  holder.release();
  await (await queued).release();
  await vi.waitFor(() => {
    expect([own.waitingCount, own.idleCount]).toEqual([0, 1]);
  });
});

test('a statement that a failed handler has left running holds up neither its response nor the pool', async () => {
  const own = ledger.server.pool({ max: 1 });
  const callback = transferFailed();
  const receiver = receiverOn(own, {
    storeTimeoutMs: 9_000,
    leaseMs: 29_000,
    async onFailed(given, { tx }) {
      await book(given, { tx });
      void tx.query('SELECT pg_sleep(50)');
      throw new Error('one branch of two');
    },
  });
  const { outcome, durationMs } = await receiver.receive(callback);
  expect(outcome).toBe('handler_failed');
  expect(durationMs).toBeLessThan(8_900); // Less than storeTimeoutMs.
  // The pool has room again. PostgreSQL keeps the claim until the statement has ended.
  expect((await receiverOn(own, { inFlightWaitMs: 0 }).receive(callback)).outcome).toBe('in_progress');
  const sleeping = await ledger.pool.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%(50)'`,
  );
  expect(sleeping.rowCount).toBeGreaterThan(0);
  expect((await receiverOn(own).receive(callback)).outcome).toBe('processed');
  expect(await ledger.bookings(callback.data.id)).toEqual(['FAILED']);
});

test('a failed handler whose last statement ends soon costs the pool no connection', async () => {
  const own = ledger.server.pool({ max: 1 });
  const callback = transferSucceeded();
  const backends = new Set<unknown>();
  const receiver = receiverOn(own, {
    async onSuccess(given, { tx }) {
      const { rows } = await tx.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
      const isFirst = backends.size === 0;
      backends.add(rows[0]?.pid);
      const booked = book(given, { tx });
      if (isFirst) throw new Error('one branch of two');
      await booked;
    },
  });
  expect((await receiver.receive(callback)).outcome).toBe('handler_failed');
  expect((await receiver.receive(callback)).outcome).toBe('processed');
  expect(backends.size).toBe(1);
  expect(await ledger.bookings(callback.data.id)).toEqual(['SUCCESS']);
});

test('a database that takes everything and replies nothing costs `read` no client for ever', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  try {
    const { own, proxy } = await poolBehindProxy(ledger.server);
    const store = pgStore(own);
    expect(await store.read(randomUUID())).toMatchObject({ state: 'free' });
    proxy.fallSilent();
    const reading = store.read(randomUUID()).catch((error: unknown) => error);
    while (own.totalCount > 0) {
      await vi.advanceTimersByTimeAsync(1_000);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(await reading).toBeInstanceOf(Error);
  } finally {
    vi.useRealTimers();
  }
});
