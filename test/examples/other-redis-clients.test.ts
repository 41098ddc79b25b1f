import { GlideClient } from '@valkey/valkey-glide';
import { redisStore } from 'transfer-callbacks';
import { storeContract } from 'transfer-callbacks/testing';
import { beforeAll, describe, expect, test } from 'vitest';
import { glideCommands, upstashCommands } from '../../examples/other-redis-clients.js';
import type { Connected } from '../support/servers/redis-clients.js';
import { startRedisForFile } from '../support/servers/redis-for-file.js';
import { serveWeb } from '../support/servers/serve.js';
import { claimFree, request } from '../stores/support.js';

const own = startRedisForFile();

async function connectGlide() {
  const addresses = [{ host: '127.0.0.1', port: own.server.port }];
  const glide = await GlideClient.createClient({ addresses, requestTimeout: 5_000 });
  return {
    client: glideCommands(glide),
    close() {
      glide.close();
    },
  };
}

const token = 'token-of-the-test';

/** A server that takes commands as Upstash documents it, in front of the real Redis: one JSON list for each command. */
async function connectUpstash() {
  const { url, close } = await serveWeb(async (request) => {
    if (request.headers.get('authorization') !== `Bearer ${token}`) {
      return Response.json({ error: 'Unauthorized' }, { status: 401 });
    }
    const [command, ...args] = (await request.json()) as [string, ...string[]];
    return own.redis.call(command, ...args).then(
      (result) => Response.json({ result }),
      (error: unknown) => Response.json({ error: (error as Error).message }, { status: 400 }),
    );
  });
  return { client: upstashCommands(url, token), close };
}

const clients: [string, () => Promise<Connected>][] = [
  ['Valkey Glide', connectGlide],
  ["Upstash's REST API", connectUpstash],
];

describe.each(clients)('the Redis store on %s', (name, connect) => {
  let client: Connected['client'];
  beforeAll(async () => {
    const connected = await connect();
    ({ client } = connected);
    return () => connected.close();
  });

  // One check after another on the REST API: hundreds of requests at once would meet its deadline on a busy machine.
  const contract = name === 'Valkey Glide' ? test.concurrent : test;
  contract.each(storeContract)('$title', ({ check }) => check(redisStore(client)));

  test('a handled record is still found while the server refuses writes', async () => {
    const store = redisStore(client);
    const key = crypto.randomUUID();
    const claim = await claimFree(store, {}, key);
    await claim.settle();
    await own.server.command('config', 'set', 'maxmemory', '1');
    try {
      expect(await store.claim(key, { ...request, token: 'another' })).toMatchObject({ state: 'handled' });
    } finally {
      await own.server.command('config', 'set', 'maxmemory', '0');
    }
  });
});

describe('other-redis-clients.ts', () => {
  test('a request that the REST API refuses rejects with its reason', async () => {
    const { client, close } = await connectUpstash();
    await expect(client.call('set', 'only-a-key')).rejects.toThrow("wrong number of arguments for 'set' command");
    const { url, close: closeOther } = await serveWeb(() =>
      Promise.resolve(Response.json({ error: 'Unauthorized' }, { status: 401 })),
    );
    await expect(upstashCommands(url, 'wrong').call('get', 'key')).rejects.toThrow('Unauthorized');
    await closeOther();
    await close();
  });
});
