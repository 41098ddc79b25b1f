import { Agent, createServer } from 'node:http';
import { once } from 'node:events';
import { connect, type AddressInfo } from 'node:net';
import { afterAll, describe, expect, test, vi } from 'vitest';
import {
  redisStore,
  transferCallbackListener,
  type HandlerContext,
  type ReceiverOptions,
  type TransferCallback,
} from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { later, receiverOf } from '../core/support.js';
import { post } from '../support/helpers/post.js';
import { serve } from '../support/servers/serve.js';
import { head } from '../support/helpers/sockets.js';
import { startRedisForFile } from '../support/servers/redis-for-file.js';

const own = startRedisForFile();
const closing: (() => unknown)[] = [];
afterAll(async () => {
  for (const close of closing) await close();
});

async function merchant(options: Partial<ReceiverOptions>) {
  const receiver = receiverOf({ store: redisStore(own.redis), ...options });
  const { url, close } = await serve(transferCallbackListener({ receiver }));
  closing.push(close);
  return { url, receiver };
}

/** A handler that waits to be told, once; the runs after the first succeed immediately. */
function toldHandler() {
  const work = later();
  const started = later<HandlerContext>();
  const handler = vi.fn((_callback: TransferCallback, context: HandlerContext): unknown => {
    if (handler.mock.calls.length > 1) return undefined;
    started.resolve(context);
    return work.promise;
  });
  return { handler, started: started.promise, work };
}

describe.concurrent('deliveries', () => {
  test('a handler that exceeds its timeout gets 503, keeps its claim beyond the lease, and its late success counts', async () => {
    const { handler, started, work } = toldHandler();
    const { url } = await merchant({
      onSuccess: handler,
      handlerTimeoutMs: 2_000,
      leaseMs: 3_100,
      storeTimeoutMs: 1_000,
      inFlightWaitMs: 0,
    });
    const callback = transferSucceeded();
    const startedAt = performance.now();
    const first = await post(url, callback);
    const { signal } = await started;
    expect([first.status, signal.aborted]).toEqual([503, true]);
    expect(signal.reason).toMatchObject({ code: 'HANDLER_TIMEOUT' });
    // For two leases, if nobody renewed it.
    while (performance.now() < startedAt + 6_500) {
      expect((await post(url, callback)).status).toBe(409);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    work.resolve();
    await vi.waitFor(async () => {
      expect((await post(url, callback)).body).toBe('{"outcome":"duplicate"}');
    });
    expect(handler).toHaveBeenCalledTimes(1);
  });

  test('the last attempt waits for the first, and runs the handler when that has failed', async () => {
    const { handler, started, work } = toldHandler();
    const { url } = await merchant({ onSuccess: handler });
    const callback = transferSucceeded();
    const first = post(url, callback);
    await started;
    const last = post(url, callback);
    const key = `transfer-callbacks:${callback.data.id}`;
    const claimedBy = await own.redis.get(key);
    work.reject(new Error('failed after all'));
    expect([(await first).status, (await last).status]).toEqual([500, 200]);
    expect(handler).toHaveBeenCalledTimes(2);
    expect(await own.redis.get(key)).not.toContain(claimedBy?.split(' ')[1]);
  });

  test('a client that hangs up stops no handler, and its retry is a duplicate', async () => {
    const { handler, started, work } = toldHandler();
    const { url } = await merchant({ onSuccess: handler });
    const callback = transferSucceeded();
    const body = JSON.stringify(callback);
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    socket.on('error', () => undefined);
    socket.write(head(url, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) }) + body);
    const { signal } = await started;
    socket.resetAndDestroy();
    await once(socket, 'close');
    expect(signal.aborted).toBe(false);
    work.resolve();
    expect((await post(url, callback)).body).toBe('{"outcome":"duplicate"}');
    expect(handler).toHaveBeenCalledTimes(1);
  });

  test('at shutdown a running delivery is acknowledged, and a new one gets 503 and its connection is closed', async () => {
    const { handler, started, work } = toldHandler();
    const receiver = receiverOf({ store: redisStore(own.redis), onSuccess: handler });
    const app = createServer(transferCallbackListener({ receiver })).listen(0, '127.0.0.1');
    await once(app, 'listening');
    const url = `http://127.0.0.1:${(app.address() as AddressInfo).port}`;
    // A connection that is open when the shutdown begins, and brings another callback during it.
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const callback = transferSucceeded();
    const running = post(url, callback);
    await started;
    const early = await post(url, transferSucceeded(), { agent });
    expect(early).toMatchObject({ status: 200, headers: { connection: 'keep-alive' } });

    const receiverClosed = receiver.close();
    const meanwhile = await post(url, transferSucceeded(), { agent });
    expect(meanwhile).toMatchObject({ status: 503, headers: { connection: 'close' } });
    const serverClosed = once(app, 'close');
    app.close();
    work.resolve();
    expect((await running).body).toBe('{"outcome":"processed"}');
    expect(await receiverClosed).toEqual({ unfinished: 0, ids: [] });
    await serverClosed;
    agent.destroy();
    expect(await own.redis.get(`transfer-callbacks:${callback.data.id}`)).toMatch(/^handled /);
  });
});
