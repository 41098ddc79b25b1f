import { expect, test } from 'vitest';
import { reconcileTransfers, type PendingTransfer } from 'transfer-callbacks/client';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { later } from '../../core/support.js';
import { serviceOf } from '../support.js';
import { collectGarbage } from '../../support/helpers/runtime.js';

const { data } = transferSucceeded();
/** A transfer that is not final takes no receiver and no store: what remains is the run. */
const readOpen = (id: string) => Promise.resolve({ ...data, id, status: 'PENDING' });
const receive = () => Promise.reject(new Error('not asked'));

function* transfers(count: number): Generator<PendingTransfer> {
  for (let index = 0; index < count; index += 1) yield { id: `tr-${index}`, createdAt: 0 };
}

/** Returns the processor time of a run in milliseconds: other programs on the machine do not add to it. */
async function measurePass(concurrency: number, count: number): Promise<number> {
  const client = {
    async getTransaction(id: string) {
      await new Promise(setImmediate);
      return readOpen(id);
    },
  };
  const before = process.cpuUsage();
  const report = await reconcileTransfers({
    receiver: { receive, options: { service: serviceOf(client) } },
    pending: transfers(count),
    concurrency,
  });
  expect(report.pending).toBe(count);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

test('a run of 20 000 transfers takes no longer at concurrency 2 000 than at 20', async () => {
  await measurePass(20, 5_000); // For the compiler.
  const [few, many] = [await measurePass(20, 20_000), await measurePass(2_000, 20_000)];
  expect(many).toBeLessThan(6 * few + 1_000);
});

test('one slow transfer keeps nothing of those that pass it', async () => {
  const slow = later();
  const client = {
    async getTransaction(id: string) {
      if (id === 'tr-0') await slow.promise;
      return readOpen(id);
    },
  };
  const heap: number[] = [];
  const report = await reconcileTransfers({
    receiver: { receive, options: { service: serviceOf(client) } },
    pending: transfers(100_001),
    onProgress: (_reconciled, { pending }) => {
      if (pending % 25_000 === 0) {
        collectGarbage();
        heap.push(process.memoryUsage().heapUsed);
      }
      if (pending === 100_000) slow.resolve();
    },
  });
  expect(report).toMatchObject({ pending: 100_001, stopped: undefined });
  const [first = 0, ...others] = heap;
  expect(others).toHaveLength(3);
  const grownMb = Math.max(...others.map((bytes) => (bytes - first) / 1_048_576));
  expect(grownMb).toBeLessThan(4);
});
