import { invalidArgument, invalidSecret, onlyKnownOptions, TransferCallbackError } from '../core/errors.js';
import type { CallbackStore, Claim } from '../core/store.js';
import { releaseScript, renewScript } from './redis-scripts.js';

/** What the store uses of an ioredis or iovalkey client: `Redis` and `Cluster` both have it. */
export interface IoredisClient {
  call(command: string, ...args: (string | number)[]): Promise<unknown>;
}

/** What the store uses of a node-redis client: what `createClient`, `createCluster` and the others return. */
export interface NodeRedisClient {
  get(key: string): Promise<unknown>;
  set(key: string, value: string, options: { PX: number; NX?: true; GET?: true }): Promise<unknown>;
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
  /** Not called. Only node-redis spells it so, which tells it from clients whose `set` and `eval` differ. */
  evalSha: unknown;
}

export interface RedisStoreOptions {
  /** Prefix of every key. Apps that share a server need a prefix each. Default `transfer-callbacks:`. */
  prefix?: string | undefined;
}

/**
 * Keeps claims in Redis 6.2 or later, Valkey, or a Cluster of either, one string key per callback:
 * `claimed <token>` while a delivery holds it, `settled <token> <fingerprint>` once the handler has succeeded. Each
 * expires by Redis's own clock. A fresh callback costs two commands in two round trips, a duplicate as many.
 *
 * Takes a connected client, and never closes it. Throws INVALID_ARGUMENT.
 */
export function redisStore(client: IoredisClient | NodeRedisClient, options: RedisStoreOptions = {}): CallbackStore {
  onlyKnownOptions(options, ['prefix']);
  const { prefix = 'transfer-callbacks:' } = options;
  if (typeof prefix !== 'string') throw invalidArgument('prefix', 'a string', prefix);
  const redis = toCommands(client);

  return {
    async claim(id, { token, fingerprint, leaseMs, retentionMs }) {
      const key = prefix + id;
      const claimed = `claimed ${token}`;
      const settled = `settled ${token} ${fingerprint}`;
      let found: unknown;
      try {
        found = await claimOrRead(redis, key, claimed, leaseMs);
      } catch (error) {
        void releaseRejected(redis, key, claimed);
        throw error;
      }
      if (found !== claimed) return parseRecord(key, found);
      let overlapped = false;
      return {
        state: 'claimed',
        lease: {
          tx: undefined,
          async renew() {
            // A client can be set to reply with strings for numbers.
            return Number(await redis.run(renewScript, key, [claimed, String(leaseMs)])) === 1;
          },
          async settle() {
            const before = toText(await redis.setAndGet(key, settled, retentionMs));
            // Already `settled`: this command was sent twice. Only the first reply tells of an overlap, and it may come
            // when the caller has given it up.
            overlapped ||= before !== claimed && before !== settled;
            return { overlapped };
          },
          async release() {
            await redis.run(releaseScript, key, [claimed]);
          },
        },
      };
    },
  };
}

/**
 * Claims the key if it is free. Resolves with what the key holds then: `claimed`, the record of another delivery, or
 * `null` if the blocking claim has just ended.
 */
async function claimOrRead(redis: Commands, key: string, claimed: string, leaseMs: number): Promise<unknown> {
  let reply: unknown;
  try {
    reply = toText(await redis.setIfAbsent(key, claimed, leaseMs));
  } catch (error) {
    return readSettled(redis, key, error);
  }
  if (reply === 'OK') return claimed;
  // May find `claimed`: the client has sent the command twice, because the first reply was lost.
  if (reply === null) return toText(await redis.get(key));
  throw new TransferCallbackError(
    'STORE_REPLY_UNEXPECTED',
    `Expected the reply to SET NX to be "OK" or null, got ${JSON.stringify(reply)}. With node-redis in legacyMode, pass \`client.v4\`.`,
  );
}

/** How a server refuses every write and still reads: it is full, a replica, without replicas, or cannot persist. */
const writesRefused = /^(?:OOM|READONLY|NOREPLICAS|MISCONF) /;

/** Resolves with the record of a settled callback if the server refuses writes. Otherwise throws `error`. */
async function readSettled(redis: Commands, key: string, error: unknown): Promise<string> {
  if (error instanceof Error && writesRefused.test(error.message)) {
    const found = toText(await redis.get(key).catch(() => null));
    if (typeof found === 'string' && found.startsWith('settled ')) return found;
  }
  throw error;
}

/**
 * Releases a claim that was rejected, because it may still be granted: ioredis keeps a command beyond its
 * `commandTimeout` and sends it once it is connected, and node-redis rejects one whose reply is lost. Nobody would hold
 * that claim, and it would block the next attempts. Never rejects: a claim that cannot be released expires.
 */
async function releaseRejected(redis: Commands, key: string, claimed: string): Promise<void> {
  try {
    await redis.run(releaseScript, key, [claimed]);
  } catch {
    // The delivery reports why its claim was rejected.
  }
}

/** Parses the record of another delivery; `null` if the blocking claim has just ended. Throws STORE_RECORD_UNREADABLE. */
function parseRecord(key: string, found: unknown): Claim {
  if (found === null) return { state: 'in_progress' };
  if (typeof found === 'string') {
    if (found.startsWith('claimed ')) return { state: 'in_progress' };
    const fingerprint = /^settled \S+ (.*)$/s.exec(found)?.[1];
    if (fingerprint !== undefined) return { state: 'settled', fingerprint };
  }
  throw new TransferCallbackError('STORE_RECORD_UNREADABLE', `The key ${key} holds something else than a callback.`);
}

/** A client can be set to reply with Buffers for strings. */
function toText(reply: unknown): unknown {
  return Buffer.isBuffer(reply) ? reply.toString() : reply;
}

/** The commands of the store, as each family of clients spells them. */
interface Commands {
  setIfAbsent(key: string, value: string, expiresInMs: number): Promise<unknown>;
  setAndGet(key: string, value: string, expiresInMs: number): Promise<unknown>;
  get(key: string): Promise<unknown>;
  run(script: string, key: string, args: string[]): Promise<unknown>;
}

function toCommands(client: unknown): Commands {
  // ioredis makes its methods on the prototype, so that `in` finds those too.
  if (typeof client === 'object' && client !== null) {
    if ('evalSha' in client) return nodeRedisCommands(client as NodeRedisClient);
    if ('call' in client) return ioredisCommands(client as IoredisClient);
  }
  // Perhaps a URL with a password in it.
  throw invalidSecret('client', 'an ioredis, iovalkey or node-redis client', client);
}

/**
 * Command names are in lower case: by upper-case names iovalkey, and ioredis up to 5.6, find no key in the arguments.
 * They would not apply a `keyPrefix`, and send commands to the wrong nodes of a Cluster.
 */
function ioredisCommands(client: IoredisClient): Commands {
  return {
    setIfAbsent: (key, value, expiresInMs) => client.call('set', key, value, 'px', expiresInMs, 'nx'),
    setAndGet: (key, value, expiresInMs) => client.call('set', key, value, 'px', expiresInMs, 'get'),
    get: (key) => client.call('get', key),
    run: (script, key, args) => client.call('eval', script, 1, key, ...args),
  };
}

function nodeRedisCommands(client: NodeRedisClient): Commands {
  return {
    setIfAbsent: (key, value, expiresInMs) => client.set(key, value, { PX: expiresInMs, NX: true }),
    setAndGet: (key, value, expiresInMs) => client.set(key, value, { PX: expiresInMs, GET: true }),
    get: (key) => client.get(key),
    run: (script, key, args) => client.eval(script, { keys: [key], arguments: args }),
  };
}
