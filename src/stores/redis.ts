import { invalidOption, invalidSecret, onlyKnownOptions, TransferCallbackError } from '../core/errors.js';
import type { CallbackStore, Claim } from '../core/store.js';
import { releaseScript, renewScript, type Script } from './redis-scripts.js';

/** What the store uses of an ioredis or iovalkey client: `Redis` and `Cluster` both have it. */
export interface IoredisClient {
  call(command: string, ...args: (string | number)[]): Promise<unknown>;
}

/** What the store uses of a node-redis client: what `createClient`, `createCluster` and the others return. */
export interface NodeRedisClient {
  get(key: string): Promise<unknown>;
  set(key: string, value: string, options: { PX: number; NX?: true; GET?: true }): Promise<unknown>;
  evalSha(sha1: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
}

export interface RedisStoreOptions {
  /** Stands before the callback's id in every key. Default `transfer-callbacks:`. */
  prefix?: string | undefined;
}

/**
 * Keeps claims in Redis 6.2 or later, Valkey, or a Cluster of either, one string key per callback:
 * `claimed <token>` while a delivery holds it, `settled <token> <fingerprint>` once the handler has succeeded. Each
 * expires by Redis's own clock. A fresh callback costs two commands in two round trips, a duplicate as many.
 *
 * Give it a client of your own, connected; the store never closes it. Throws INVALID_OPTION.
 */
export function redisStore(client: IoredisClient | NodeRedisClient, options: RedisStoreOptions = {}): CallbackStore {
  onlyKnownOptions(options, ['prefix']);
  const { prefix = 'transfer-callbacks:' } = options;
  if (typeof prefix !== 'string') throw invalidOption('prefix', 'a string', prefix);
  const redis = commandsOf(client);

  return {
    async claim(id, { token, fingerprint, leaseMs, retentionMs }) {
      const key = prefix + id;
      const claimed = `claimed ${token}`;
      if (!(await redis.setIfAbsent(key, claimed, leaseMs))) {
        const found = await redis.get(key);
        // Refused for a claim of our own: the client has sent the command twice, because the first reply was lost.
        if (found !== claimed) return claimOfAnother(key, found);
      }
      const settled = `settled ${token} ${fingerprint}`;
      return {
        state: 'claimed',
        lease: {
          tx: undefined,
          async renew() {
            return (await redis.run(renewScript, key, [claimed, String(leaseMs)])) === 1;
          },
          async settle() {
            const before = await redis.setAndGet(key, settled, retentionMs);
            // `settled` before: this very command, sent twice.
            return { overlapped: before !== claimed && before !== settled };
          },
          async release() {
            await redis.run(releaseScript, key, [claimed]);
          },
        },
      };
    },
  };
}

/** Reads the record of another delivery, or of none: then the claim that stood here has gone a moment ago. */
function claimOfAnother(key: string, found: unknown): Claim {
  if (found === null) return { state: 'in_progress' };
  if (typeof found === 'string') {
    if (found.startsWith('claimed ')) return { state: 'in_progress' };
    const fingerprint = /^settled \S+ (.*)$/s.exec(found)?.[1];
    if (fingerprint !== undefined) return { state: 'settled', fingerprint };
  }
  throw new TransferCallbackError('STORE_RECORD_UNREADABLE', `The key ${key} holds something else than a callback.`);
}

/** The commands of the store, in the words of each family of clients. */
interface Commands {
  setIfAbsent(key: string, value: string, expiresInMs: number): Promise<boolean>;
  setAndGet(key: string, value: string, expiresInMs: number): Promise<unknown>;
  get(key: string): Promise<unknown>;
  run(script: Script, key: string, args: string[]): Promise<unknown>;
}

function commandsOf(client: unknown): Commands {
  // ioredis makes its methods on the prototype, so that `in` finds those too.
  if (typeof client === 'object' && client !== null) {
    if ('evalSha' in client) return commandsOfNodeRedis(client as NodeRedisClient);
    if ('call' in client) return commandsOfIoredis(client as IoredisClient);
  }
  // Perhaps a URL with a password in it.
  throw invalidSecret('client', 'an ioredis, iovalkey or node-redis client', client);
}

function commandsOfIoredis(client: IoredisClient): Commands {
  return {
    async setIfAbsent(key, value, expiresInMs) {
      return (await client.call('SET', key, value, 'PX', expiresInMs, 'NX')) !== null;
    },
    setAndGet: (key, value, expiresInMs) => client.call('SET', key, value, 'PX', expiresInMs, 'GET'),
    get: (key) => client.call('GET', key),
    run: (script, key, args) =>
      cached(
        () => client.call('EVALSHA', script.sha1, 1, key, ...args),
        () => client.call('EVAL', script.text, 1, key, ...args),
      ),
  };
}

function commandsOfNodeRedis(client: NodeRedisClient): Commands {
  return {
    async setIfAbsent(key, value, expiresInMs) {
      return (await client.set(key, value, { PX: expiresInMs, NX: true })) !== null;
    },
    setAndGet: (key, value, expiresInMs) => client.set(key, value, { PX: expiresInMs, GET: true }),
    get: (key) => client.get(key),
    run: (script, key, args) => {
      const keysAndArguments = { keys: [key], arguments: args };
      return cached(
        () => client.evalSha(script.sha1, keysAndArguments),
        () => client.eval(script.text, keysAndArguments),
      );
    },
  };
}

/** Runs a script by its hash, and by its text where this server has not seen it yet. */
async function cached(byHash: () => Promise<unknown>, byText: () => Promise<unknown>): Promise<unknown> {
  try {
    return await byHash();
  } catch (error) {
    if (error instanceof Error && error.message.startsWith('NOSCRIPT')) return byText();
    throw error;
  }
}
