import { createHash } from 'node:crypto';

/** A Lua text and the SHA-1 under which Redis caches it. */
export interface Script {
  readonly text: string;
  readonly sha1: string;
}

function script(text: string): Script {
  return { text, sha1: createHash('sha1').update(text).digest('hex') };
}

/**
 * Renews a claim if it is still the caller's.
 *
 * KEYS[1]  the callback's key
 * ARGV[1]  the caller's claim, as it was set
 * ARGV[2]  the length of the lease in milliseconds
 * answer   1 if renewed, 0 if the key holds something else or nothing
 */
export const renewScript = script(`\
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0`);

/**
 * Releases a claim if it is still the caller's.
 *
 * KEYS[1]  the callback's key
 * ARGV[1]  the caller's claim, as it was set
 * answer   1 if released, 0 if the key holds something else or nothing
 */
export const releaseScript = script(`\
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0`);
