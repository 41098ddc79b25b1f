// Sent as text every time. EVAL costs Redis no more than EVALSHA (2.2 and 2.3 µs a call, measured), and unlike it never
// fails because a server has not seen the script.

/**
 * Renews a claim if it is still the caller's.
 *
 * KEYS[1]  the callback's key
 * ARGV[1]  the caller's claim, as it was set
 * ARGV[2]  the length of the lease in milliseconds
 * reply    1 if renewed, 0 if the key holds something else or nothing
 */
export const renewScript = `\
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0`;

/**
 * Releases a claim if it is still the caller's.
 *
 * KEYS[1]  the callback's key
 * ARGV[1]  the caller's claim, as it was set
 * reply    1 if released, 0 if the key holds something else or nothing
 */
export const releaseScript = `\
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0`;
