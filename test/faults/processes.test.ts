import { afterAll, describe, expect, test } from 'vitest';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { post } from '../support/helpers/post.js';
import { endMerchants, startMerchant, type MerchantOptions } from '../support/programs/merchant.js';
import { startRedisForFile } from '../support/servers/redis-for-file.js';

const own = startRedisForFile();
afterAll(endMerchants);

const quick = { leaseMs: 6_100, storeTimeoutMs: 2_000, handlerTimeoutMs: 60_000, inFlightWaitMs: 0 };
const start = (options: Omit<MerchantOptions, 'redisUrl'> = {}) =>
  startMerchant({ redisUrl: own.server.url, ...options });
const recordOf = (id: string): Promise<string | null> => own.redis.get(`transfer-callbacks:${id}`);

/** Sends a callback until it is acknowledged, as the service does, but every 50 ms and for at most 40 s. */
async function sendUntilAcknowledged(url: string, callback: unknown): Promise<number[]> {
  const statuses: number[] = [];
  for (const giveUpAt = performance.now() + 40_000; performance.now() < giveUpAt;) {
    const { status } = await post(url, callback);
    statuses.push(status);
    if (status === 200) break;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return statuses;
}

// Eight processes start at the same time: on a busy machine that takes most of the time.
describe.concurrent('between processes', { timeout: 180_000 }, () => {
  test('the callback of a process that is killed in its handler is taken over when the lease lapses, and not before', async () => {
    const [killed, second] = await Promise.all([start({ handlersWait: true, ...quick }), start(quick)]);
    const callback = transferSucceeded();
    const { id } = callback.data;
    const lost = post(killed.url, callback).catch(() => 'no response');
    await killed.says({ handling: id });
    const claimed = await recordOf(id);
    killed.signal('SIGKILL');
    expect(await killed.exitCode).toBe(null);
    expect(await lost).toBe('no response');

    const statuses = await sendUntilAcknowledged(second.url, callback);
    // It was still claimed by the dead process when the first of these came, and the handler was not run then.
    expect(claimed).toMatch(/^claimed /);
    expect(statuses[0]).toBe(409);
    expect(statuses.at(-1)).toBe(200);
    // A process's message may arrive after its response.
    await second.says({ handling: id });
    expect([killed.runs(id), second.runs(id)]).toEqual([1, 1]);
    expect(await recordOf(id)).toMatch(/^handled /);
  });

  test('fifty copies over two processes run one handler, and all are acknowledged', async () => {
    const merchants = await Promise.all([start(), start()]);
    const callback = transferFailed();
    const responses = await Promise.all(
      Array.from({ length: 50 }, (_, copy) => post((merchants[copy % 2] ?? expect.fail()).url, callback)),
    );
    expect(responses.map(({ status }) => status)).toEqual(Array.from({ length: 50 }, () => 200));
    expect(responses.filter(({ body }) => body === '{"outcome":"processed"}')).toHaveLength(1);
    await Promise.any(merchants.map((merchant) => merchant.says({ handling: callback.data.id })));
    expect(merchants.reduce((runs, merchant) => runs + merchant.runs(callback.data.id), 0)).toBe(1);
  });

  test('a process that was frozen beyond its lease undoes nothing of the process that took over', async () => {
    const [frozen, second] = await Promise.all([start({ handlersWait: true, ...quick }), start(quick)]);
    const callback = transferSucceeded();
    const { id } = callback.data;
    const late = post(frozen.url, callback);
    await frozen.says({ handling: id });
    frozen.signal('SIGSTOP');
    expect((await sendUntilAcknowledged(second.url, callback)).at(-1)).toBe(200);
    const handled = await recordOf(id);

    frozen.signal('SIGCONT');
    await frozen.says({ aborted: id, code: 'LEASE_LOST' });
    frozen.tell(id, 'fail');
    expect((await late).status).toBe(500);
    expect(await recordOf(id)).toBe(handled);
    expect((await post(second.url, callback)).body).toBe('{"outcome":"duplicate"}');
    await second.says({ handling: id });
    expect(second.runs(id)).toBe(1);
  });

  test('after SIGTERM a running handler finishes and is recorded, and the process exits with 0', async () => {
    const merchant = await start({ handlersWait: true });
    const callback = transferSucceeded();
    const { id } = callback.data;
    const running = post(merchant.url, callback);
    await merchant.says({ handling: id });
    merchant.signal('SIGTERM');
    await merchant.says({ closing: true });
    await expect(post(merchant.url, transferSucceeded())).rejects.toThrow();
    merchant.tell(id, 'succeed');
    expect(await running).toMatchObject({ status: 200, headers: { connection: 'close' } });
    expect(await merchant.exitCode).toBe(0);
    expect(await recordOf(id)).toMatch(/^handled /);
  });

  test('a signal that comes a second after the first ends the process, although a handler runs', async () => {
    const merchant = await start({ handlersWait: true });
    const callback = transferSucceeded();
    const running = post(merchant.url, callback).catch(() => 'no response');
    await merchant.says({ handling: callback.data.id });
    merchant.signal('SIGTERM');
    await merchant.says({ closing: true });
    const again = setInterval(() => {
      merchant.signal('SIGTERM');
    }, 100);
    expect(await merchant.exitCode).toBe(null);
    clearInterval(again);
    expect(await running).toBe('no response');
  });
});
