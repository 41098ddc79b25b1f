import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { redisStore } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import type { NodeRedisClient } from '../../src/stores/redis/store.js';
import { receiverOf } from '../core/support.js';
import { connectNodeRedis } from '../support/servers/redis-clients.js';
import { connectForTest, startRedisForFile } from '../support/servers/redis-for-file.js';
import { containing } from '../support/helpers/containing.js';

const own = startRedisForFile();

describe('a reply to the claim that is neither OK nor null', () => {
  test('a client in legacyMode runs no handler, and its claims block no other client', async () => {
    const { client, close } = await connectNodeRedis(own.server.port);
    onTestFinished(close);
    const onSuccess = vi.fn();
    const callback = transferSucceeded();
    const legacy = receiverOf({ store: redisStore(inLegacyMode(client)), onSuccess });
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      expect(await legacy.receive(callback)).toMatchObject({
        outcome: 'store_unavailable',
        error: {
          code: 'STORE_REPLY_UNEXPECTED',
          message: containing(
            'Expected the reply to SET NX to be "OK" or null, got undefined. ' +
              'With node-redis in legacyMode, pass `client.v4`.',
          ),
        },
      });
    }
    expect(onSuccess).not.toHaveBeenCalled();
    const receiver = receiverOf({ store: redisStore(client), onSuccess, inFlightWaitMs: 0 });
    expect(await receiver.receive(callback)).toMatchObject({ outcome: 'processed' });
  });

  test('a client that is within a MULTI runs no handler, and reads no record', async () => {
    const client = connectForTest(own.server.port);
    await client.multi({ pipeline: false });
    const onSuccess = vi.fn();
    const receiver = receiverOf({ store: redisStore(client), onSuccess });
    expect(await receiver.receive(transferSucceeded())).toMatchObject({
      outcome: 'store_unavailable',
      error: { code: 'STORE_REPLY_UNEXPECTED', message: containing('got "QUEUED"') },
    });
    expect(onSuccess).not.toHaveBeenCalled();
    await expect(receiver.inspect('any')).rejects.toMatchObject({
      code: 'STORE_REPLY_UNEXPECTED',
      message: containing('Expected the reply to EVAL to be an array, got "QUEUED".'),
    });
  });
});

/**
 * Imitates node-redis 4 in legacyMode, which cannot be installed beside node-redis 6: its methods send the
 * command and resolve with undefined. The client beneath is real.
 */
function inLegacyMode(client: NodeRedisClient): NodeRedisClient {
  const muted =
    <A extends unknown[]>(send: (...args: A) => Promise<unknown>) =>
    async (...args: A): Promise<undefined> => {
      await send(...args);
    };
  return {
    get: muted((key: string) => client.get(key)),
    set: muted((...args: Parameters<NodeRedisClient['set']>) => client.set(...args)),
    eval: muted((...args: Parameters<NodeRedisClient['eval']>) => client.eval(...args)),
    evalSha: client.evalSha,
  };
}

test('an adapter that replies with undefined for nil works, and its check is right', async () => {
  const withoutNil = (reply: unknown): unknown => (Array.isArray(reply) ? reply.map(withoutNil) : (reply ?? undefined));
  const store = redisStore({ call: async (name, ...args) => withoutNil(await own.redis.call(name, ...args)) });
  const onSuccess = vi.fn();
  const receiver = receiverOf({ store, onSuccess, inFlightWaitMs: 0 });
  const callback = transferSucceeded();
  expect(await receiver.receive(callback)).toMatchObject({ outcome: 'processed', overlapped: false });
  expect(await receiver.receive(callback)).toMatchObject({ outcome: 'duplicate' });
  expect(onSuccess).toHaveBeenCalledTimes(1);
  expect(await receiver.check()).toMatchObject({ ok: true });
  expect(await receiver.inspect(callback.data.id)).toMatchObject({ state: 'handled' });
  expect(await receiver.inspect('unknown')).toMatchObject({ state: 'free' });
});
