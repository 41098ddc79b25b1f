import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { Queue, UnrecoverableError, Worker } from 'bullmq';
import { memoryStore, transferCallbackReceiver } from 'transfer-callbacks';
import { defineService } from 'transfer-callbacks/client';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { describe, expect, it, onTestFinished } from 'vitest';
import { handOffTo } from '../../examples/queue-hand-off.js';
import { startRedisForFile } from '../support/servers/redis-for-file.js';
import { duplicate, processed, run } from './support.js';

type Outcome = Parameters<ReturnType<typeof handOffTo>>[0];

const own = startRedisForFile();

/** A queue, the handler that adds to it, and a worker that notes its jobs, or fails for good while `isClosed`. */
function setUp() {
  const connection = { url: own.server.url };
  const name = randomUUID();
  const queue = new Queue<Outcome>(name, { connection });
  const ledger = { isClosed: false };
  const worked: unknown[] = [];
  const worker = new Worker<Outcome>(
    name,
    ({ data, attemptsMade }) => {
      worked.push({ ...data, attemptsMade });
      if (ledger.isClosed) throw new UnrecoverableError('The ledger is closed');
      return Promise.resolve();
    },
    { connection },
  );
  onTestFinished(async () => {
    await worker.close();
    await queue.close();
  });
  return { worker, ledger, worked, handOff: handOffTo(queue) };
}

describe('queue-hand-off.ts', () => {
  it('acknowledges a queued callback, works on it once, and exits', async () => {
    const { exitCode, output } = run('queue-hand-off.ts', { REDIS_URL: own.server.url });

    expect(await exitCode).toBe(0);
    expect(output()).toContain(`first delivery got 200: ${processed.body}`);
    expect(output()).toContain(`second delivery got 200: ${duplicate.body}`);
    expect(output().match(/Worked on payout-\w+: SUCCESS/g)).toHaveLength(1);
  });

  it('has a job for the success of a transfer and one for its reversal', async () => {
    const { worker, worked, handOff } = setUp();
    const service = defineService({
      read: ({ state, id }: { state: string; id: string }) => ({ state, id, externalId: id }),
      states: { paid: 'SUCCESS', failed: 'FAILED', returned: 'REVERSED' },
    });
    const handlers = { onSuccess: handOff, onFailed: handOff, onReversed: handOff };
    const days = 60 * 86_400_000;
    const receiver = transferCallbackReceiver({ store: memoryStore(), service, retentionMs: days, ...handlers });

    for (const state of ['paid', 'returned']) {
      const completed = once(worker, 'completed');
      expect((await receiver.receive({ state, id: 'payout-1' })).outcome).toBe('processed');
      await completed;
    }

    expect(worked).toMatchObject([{ event: 'transfer.success' }, { event: 'transfer.reversed' }]);
  });

  it('tries a failed job again when its callback is handed on again, with the callback that came then', async () => {
    const { worker, ledger, worked, handOff } = setUp();
    const receiver = transferCallbackReceiver({ store: memoryStore(), onSuccess: handOff, onFailed: handOff });
    const callback = transferSucceeded();
    const { id } = callback.data;
    ledger.isClosed = true;
    const failed = once(worker, 'failed');
    expect((await receiver.receive(callback)).outcome).toBe('processed');
    await failed;

    ledger.isClosed = false;
    const record = await receiver.inspect(id);
    if (record.state !== 'handled') expect.fail();
    await receiver.forget(id, { fingerprint: record.fingerprint, by: 'ana', reason: 'The job has failed.' });
    const completed = once(worker, 'completed');
    const corrected = transferSucceeded({ ...callback.data, amount: 7 });
    expect((await receiver.receive(corrected)).outcome).toBe('processed');
    await completed;

    expect(worked).toMatchObject([
      { ...callback, attemptsMade: 0 },
      { ...corrected, attemptsMade: 0 },
    ]);
  });
});
