import { describeGiven, invalidArgument, onlyKnownOptions } from '../../lib/checks.js';
import { TransferCallbackError } from '../../lib/errors.js';
import { describeHolder } from '../../core/delivery.js';
import type { CallbackStore, Claim, ClaimReply, ClaimRequest, StoreRecord } from '../../core/store.js';
import { toRecordKey } from '../../core/callback.js';
import { toCommands, toText, type Commands, type IoredisClient, type NodeRedisClient } from './commands.js';
import { forgetScript, readScript, releaseScript, renewScript } from './scripts.js';

export type { IoredisClient, NodeRedisClient };

/** Options of `redisStore`. */
export interface RedisStoreOptions {
  /**
   * Prefix of every key. Apps that share a server need a prefix each.
   * @default 'transfer-callbacks:'
   */
  prefix?: string | undefined;
}

/**
 * Keeps claims in Redis 6.2 or later, Valkey, or a Cluster of either, one string key per callback:
 * `claimed <token>` while a delivery holds it, `handled <token> <fingerprint>` once the handler has succeeded. Each
 * expires by Redis's own clock. A fresh callback costs two commands in two round trips, a duplicate as many.
 *
 * Takes a connected client, and never closes it. Throws INVALID_ARGUMENT.
 *
 * @example
 * const store = redisStore(new Redis(url), { prefix: 'payouts-production:' });
 */
export function redisStore(
  client: IoredisClient | NodeRedisClient,
  options: RedisStoreOptions = {},
): Required<Omit<CallbackStore, 'check'>> {
  onlyKnownOptions(options, ['prefix']);
  const { prefix = 'transfer-callbacks:' } = options;
  if (typeof prefix !== 'string') throw invalidArgument('prefix', 'a string', prefix, "prefix: 'transfer-callbacks:'");
  const redis = toCommands(client);
  return {
    transactional: false,
    claimsBoth: false,
    processLocal: false,
    claim: (id, request) =>
      request.record === undefined
        ? claim(redis, prefix + id, request)
        : toRecordKey(id, 'reversal').then((key) => claim(redis, prefix + key, request)),
    async read(id, record) {
      const key = prefix + (await toRecordKey(id, record));
      return toStoreRecord(key, await redis.run(readScript, key));
    },
    async forget(id, fingerprint, record) {
      const key = prefix + (await toRecordKey(id, record));
      return Number(await redis.run(forgetScript, key, [fingerprint])) === 1;
    },
  };
}

async function claim(redis: Commands, key: string, request: ClaimRequest): Promise<ClaimReply> {
  const claimed = `claimed ${request.token}`;
  let found: unknown;
  try {
    found = await claimOrRead(redis, key, claimed, request.leaseMs);
  } catch (error) {
    void releaseRejected(redis, key, claimed);
    throw error;
  }
  if (found === claimed) return { state: 'claimed', claim: toClaim(redis, key, claimed, request) };
  // The blocking claim has just ended. The caller asks again after its pause, as it does while the claim is held.
  if (found === null) return { state: 'in_progress' };
  const record = parseRecord(key, found);
  return record.state === 'claimed' ? { state: 'in_progress' } : { state: 'handled', fingerprint: record.fingerprint };
}

function toClaim(
  redis: Commands,
  key: string,
  claimed: string,
  { token, fingerprint, leaseMs, retentionMs }: ClaimRequest,
): Claim {
  const handled = `handled ${token} ${fingerprint}`;
  let overlapped = false;
  return {
    tx: undefined,
    async renew() {
      return Number(await redis.run(renewScript, key, [claimed, String(leaseMs)])) === 1;
    },
    async settle() {
      const before = toText(await redis.setAndGet(key, handled, retentionMs));
      // Already `handled`: this command was sent twice. Only the first reply tells of an overlap, and it may arrive
      // after the caller has stopped waiting.
      overlapped ||= before !== claimed && before !== handled;
      return { overlapped };
    },
    async release() {
      await redis.run(releaseScript, key, [claimed]);
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
    return readHandled(redis, key, error);
  }
  if (reply === 'OK') return claimed;
  // The key may hold `claimed`: the client has sent the command twice, because the first reply was lost.
  if (reply === null) return toText(await redis.get(key));
  throw new TransferCallbackError(
    'STORE_REPLY_UNEXPECTED',
    `Expected the reply to SET NX to be "OK" or null, got ${describeGiven(reply)}. With node-redis in legacyMode, pass \`client.v4\`.`,
  );
}

/**
 * How a server refuses every write and still reads: it is full, a replica, without replicas, or cannot persist. Valkey
 * Glide adds a colon.
 */
const writesRefused = /^(?:OOM|READONLY|NOREPLICAS|MISCONF)\b/;

/** Resolves with the record of a handled callback if the server refuses writes. Otherwise throws `error`. */
async function readHandled(redis: Commands, key: string, error: unknown): Promise<string> {
  if (error instanceof Error && writesRefused.test(error.message)) {
    const found = toText(await redis.get(key).catch(() => null));
    if (typeof found === 'string' && found.startsWith('handled ')) return found;
  }
  throw error;
}

/**
 * Releases a claim that was rejected, because it may still be granted: ioredis keeps a command beyond its
 * `commandTimeout` and sends it once it is connected, and node-redis rejects one whose reply is lost. No delivery would
 * hold that claim, and it would block the next attempts. Never rejects: a claim that cannot be released expires.
 */
async function releaseRejected(redis: Commands, key: string, claimed: string): Promise<void> {
  try {
    await redis.run(releaseScript, key, [claimed]);
  } catch {
    // The delivery reports why its claim was rejected.
  }
}

/** What the key of a callback holds. */
type RedisRecord =
  | { readonly state: 'claimed'; readonly token: string }
  | { readonly state: 'handled'; readonly token: string; readonly fingerprint: string };

/** Parses what a key holds. Throws STORE_RECORD_UNREADABLE. */
function parseRecord(key: string, value: unknown): RedisRecord {
  const [state, token, ...facts] = String(value).split(' ');
  if (token !== undefined) {
    if (state === 'claimed') return { state, token };
    if (state === 'handled' && facts.length > 0) return { state, token, fingerprint: facts.join(' ') };
  }
  throw new TransferCallbackError(
    'STORE_RECORD_UNREADABLE',
    `The key ${key} holds something other than a callback record.`,
  );
}

/** Translates the reply to `readScript` for people. Throws STORE_REPLY_UNEXPECTED and STORE_RECORD_UNREADABLE. */
function toStoreRecord(key: string, reply: unknown): StoreRecord {
  if (!Array.isArray(reply)) {
    throw new TransferCallbackError(
      'STORE_REPLY_UNEXPECTED',
      `Expected the reply to EVAL to be an array, got ${describeGiven(reply)}.`,
    );
  }
  const [value, left] = reply as unknown[];
  if (value === null || value === undefined) return { state: 'free' };
  const record = parseRecord(key, value);
  // Negative if the time is not known.
  const leftMs = Number(left);
  const holder = describeHolder(record.token);
  if (record.state === 'claimed') {
    return { state: 'claimed', delivery: record.token, ...holder, ...(leftMs >= 0 && { leaseLeftMs: leftMs }) };
  }
  return {
    state: 'handled',
    fingerprint: record.fingerprint,
    delivery: record.token,
    // The record has no time. The delivery came in before it was handled.
    ...(holder.since && { handledAt: holder.since }),
    ...(leftMs >= 0 && { expiresAt: new Date(Date.now() + leftMs) }),
  };
}
