import { invalidSecret } from '../../lib/checks.js';

/**
 * What the store uses of an ioredis or iovalkey client: `Redis` and `Cluster` both have it. An adapter for another
 * client needs no more.
 *
 * @example
 * const makePayoutStore = (client: IoredisClient): CallbackStore => redisStore(client, { prefix: 'payouts:' });
 */
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

/** The commands of the store, as each family of clients spells them. */
export interface Commands {
  setIfAbsent(key: string, value: string, expiresInMs: number): Promise<unknown>;
  setAndGet(key: string, value: string, expiresInMs: number): Promise<unknown>;
  get(key: string): Promise<unknown>;
  /** Sends a script. A client can be set to reply with strings or Buffers for numbers. */
  run(script: string, key: string, args?: string[]): Promise<unknown>;
}

/** Returns the commands of a client. Throws INVALID_ARGUMENT. */
export function toCommands(client: unknown): Commands {
  // ioredis defines its methods on the prototype, so that `in` finds those too.
  if (typeof client === 'object' && client !== null) {
    if ('evalSha' in client) return nodeRedisCommands(client as NodeRedisClient);
    if ('call' in client) return ioredisCommands(client as IoredisClient);
  }
  // The value may be a URL with a password in it.
  throw invalidSecret(
    'client',
    'an ioredis, iovalkey or node-redis client, or an object whose `call` sends a command',
    client,
    'redisStore(new Redis(process.env.REDIS_URL))',
  );
}

/** Converts a reply: a client can be set to reply with Buffers for strings. */
export function toText(reply: unknown): unknown {
  return Buffer.isBuffer(reply) ? reply.toString() : reply;
}

/**
 * Command names are in lower case: by upper-case names iovalkey, and ioredis up to 5.6, find no key in the arguments.
 * They would not apply a `keyPrefix`, and send commands to the wrong nodes of a Cluster.
 */
function ioredisCommands(client: IoredisClient): Commands {
  // Adapters for other clients may reply with undefined for nil.
  const call: IoredisClient['call'] = async (...command) => (await client.call(...command)) ?? null;
  return {
    setIfAbsent: (key, value, expiresInMs) => call('set', key, value, 'px', expiresInMs, 'nx'),
    setAndGet: (key, value, expiresInMs) => call('set', key, value, 'px', expiresInMs, 'get'),
    get: (key) => call('get', key),
    run: (script, key, args = []) => call('eval', script, 1, key, ...args),
  };
}

function nodeRedisCommands(client: NodeRedisClient): Commands {
  return {
    setIfAbsent: (key, value, expiresInMs) => client.set(key, value, { PX: expiresInMs, NX: true }),
    setAndGet: (key, value, expiresInMs) => client.set(key, value, { PX: expiresInMs, GET: true }),
    get: (key) => client.get(key),
    run: (script, key, args = []) => client.eval(script, { keys: [key], arguments: args }),
  };
}
