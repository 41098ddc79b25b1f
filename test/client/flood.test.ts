import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test, vi } from 'vitest';
import { transferCallbackListener, type TransferCallback, type TransferCallbackOutcome } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { receiverOf } from '../core/support.js';
import { post } from '../support/helpers/post.js';
import { serveForTest } from '../support/servers/serve-for-test.js';
import { startService } from './support.js';

/** A service that needs `ms` for each query, whether its client waits or not, and knows one transfer. */
async function startSlowService(ms: number, known: TransferCallback) {
  const queries = { running: 0, most: 0 };
  const service = await startService(({ url = '' }) => (response) => {
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

describe('confirm under a flood of forged callbacks', () => {
  // 100 forged callbacks a second, a service of 200 ms a query that can respond to 40, and the attempts of the real
  // callback 1.2 s apart, for 30 s and more.
  test('the real callback is processed within its four attempts, and `concurrency` limits the queries', async () => {
    const real = transferSucceeded();
    const { client, queries } = await startSlowService(200, real);
    const outcomes: TransferCallbackOutcome[] = [];
    const onSuccess = vi.fn();
    const receiver = receiverOf({
      service: client,
      confirm: true,
      handlerTimeoutMs: 4_000,
      onSuccess,
      onOutcome: (outcome) => outcomes.push(outcome),
    });
    const url = await serveForTest(transferCallbackListener({ receiver }));

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
    expect(busy.length).toBeGreaterThan(0);
  });
});
