import { once } from 'node:events';
import { connect } from 'node:net';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { describe, expect, it, onTestFinished } from 'vitest';
import { post } from '../support/helpers/post.js';
import { startLossyProxy } from '../support/servers/lossy-proxy.js';
import { startRedisForTest } from '../support/servers/redis-for-file.js';
import { head } from '../support/helpers/sockets.js';
import { duplicate, processed, serve } from './support.js';

describe.each(['redis.ts', 'node-redis.ts'])('%s', (example) => {
  it('recognises in one process what another one has handled', async () => {
    const { url: REDIS_URL } = await startRedisForTest();
    const [one, other] = await Promise.all([serve(example, { REDIS_URL }), serve(example, { REDIS_URL })]);
    const callback = transferSucceeded();

    expect(await post(one.url, callback)).toMatchObject(processed);
    expect(await post(other.url, callback)).toMatchObject(duplicate);
    expect(other.output()).not.toContain('Paid');
  });

  it('processes a callback within four attempts after Redis has vanished without closing the connection', async () => {
    const network = await startLossyProxy((await startRedisForTest()).port);
    onTestFinished(() => network.close());
    const { url } = await serve(example, { REDIS_URL: `redis://127.0.0.1:${network.port}` });
    expect(await post(url, transferSucceeded())).toMatchObject(processed);

    network.freeze();
    const callback = transferSucceeded();
    const statuses = [(await post(url, callback)).status];
    expect(statuses).toEqual([503]);
    while (statuses.at(-1) === 503 && statuses.length < 4) statuses.push((await post(url, callback)).status);
    expect(statuses.at(-1)).toBe(200);
  });
});

describe('graceful-shutdown.ts', () => {
  it('exits with 0 on SIGTERM after the running handler was acknowledged, although a client never finishes its request', async () => {
    const { url: REDIS_URL } = await startRedisForTest();
    const { url, said, send, exitCode } = await serve('graceful-shutdown.ts', { REDIS_URL });
    const stranger = connect(Number(new URL(url).port), '127.0.0.1');
    onTestFinished(() => {
      stranger.destroy();
    });
    const cut = new Promise((resolve) => stranger.once('close', resolve).once('error', resolve));
    await once(stranger, 'connect');
    stranger.write(head(url, { 'Content-Type': 'application/json', 'Content-Length': 10 }) + '{"a');
    const callback = transferSucceeded({ externalId: 'payout-1' });
    const response = post(url, callback);
    await said(/Booking payout-1/);

    send('SIGTERM');

    expect(await response).toMatchObject(processed);
    expect(await exitCode).toBe(0);
    await cut;
    await said(/Booked payout-1/);
    const next = await serve('graceful-shutdown.ts', { REDIS_URL });
    expect(await post(next.url, callback)).toMatchObject(duplicate);
  });
});
