import { TransferCallbackError, toReason } from '../lib/errors.js';
import { callClaim, callStore, releaseUnheld, type TimedRequest } from './claim/call-store.js';
import { claimCallback } from './claim/claim-callback.js';
import type { ClaimParts } from './claim/rules.js';
import { requireRecord } from './records.js';
import type { Claim, ClaimReply, StoreRecord } from './store.js';
import { leastRetentionMs } from './times.js';

/** Whether the store keeps claims and records, and how long the check took, in milliseconds. */
export type StoreProbe =
  // With `error`, so that `ok` narrows it without `strict`, too.
  { ok: true; storeMs: number; error?: undefined } | { ok: false; error: unknown };

/**
 * Tries all that the store does for a callback, with a new key, and lets the store check itself. Beside `onReversed` it
 * claims both records. Never rejects.
 */
export async function checkStore<Tx>(token: string, parts: ClaimParts<Tx>): Promise<StoreProbe> {
  const startedAt = performance.now();
  try {
    await callStore(parts.options.storeTimeoutMs, () => tryStore(token, parts));
    return { ok: true, storeMs: performance.now() - startedAt };
  } catch (error) {
    return { ok: false, error: toReason(error) };
  }
}

/** A fingerprint as those of callbacks, which a plugin of the app might parse. */
const fingerprint = '["SUCCESS",1,"XAF","check"]';

async function tryStore<Tx>(token: string, parts: ClaimParts<Tx>): Promise<void> {
  const { store, leaseMs, storeTimeoutMs, logger, onReversed } = parts.options;
  const times = { leaseMs, retentionMs: leastRetentionMs, timeoutMs: storeTimeoutMs, queueMs: storeTimeoutMs };
  const request = { token, fingerprint, ...times, ...(onReversed !== undefined && { record: 'both' as const }) };
  const key = `check-${crypto.randomUUID()}`;
  // First: the store names what is missing in better words.
  for (const warning of (await store.check?.(key, request)) ?? []) logger.warn({}, warning);
  await tryClaims(key, request, parts);
  for (const record of onReversed === undefined ? [undefined] : ([undefined, 'reversal'] as const)) {
    if (store.read !== undefined) requireHandled('its record', requireRecord(await store.read(key, record)));
    if (store.forget !== undefined && !(await store.forget(key, fingerprint, record))) {
      throw unexpected('`store.forget` of a handled key to resolve with `true`, got `false`');
    }
  }
}

/** Claims and releases the key, then claims and settles it, and claims it once more. */
async function tryClaims<Tx>(key: string, request: TimedRequest, { options, rules }: ClaimParts<Tx>): Promise<void> {
  const claim = (of: TimedRequest): Promise<ClaimReply<Tx>> =>
    claimCallback(options.store, { key, id: key }, of, rules);
  // Each claim has a token of its own: a store may still know one that was released.
  const second = { ...request, token: `${request.token}.2` };
  const third = { ...request, token: `${request.token}.3` };
  let held: Claim<Tx> | undefined;
  try {
    held = requireGranted('a claim of a new key', await claim(request));
    // A store writes a new key and reads a taken one. A user without the right to read could only write.
    requireGranted('the same claim, sent twice,', await claim(request));
    await callClaim(held, 'release', key, request);
    held = undefined;
    held = requireGranted('a claim of a released key', await claim(second));
    await callClaim(held, 'settle', key, second);
    held = undefined;
    const copy = await claim(third);
    if (copy.state === 'claimed') held = copy.claim;
    requireHandled('a claim of a handled key', copy);
  } catch (error) {
    if (held !== undefined) releaseUnheld(held, key, request);
    throw error;
  }
}

/** Returns the claim, and throws STORE_REPLY_UNEXPECTED if it was not granted. */
function requireGranted<Tx>(what: string, reply: ClaimReply<Tx>): Claim<Tx> {
  if (reply.state === 'claimed') return reply.claim;
  throw unexpected(`${what} to be granted, got ${reply.state}`);
}

/** Throws STORE_REPLY_UNEXPECTED unless the key is handled with the fingerprint that was written. */
function requireHandled(what: string, reply: ClaimReply<unknown> | StoreRecord): void {
  if (reply.state !== 'handled') throw unexpected(`${what} to be handled, got ${reply.state}`);
  if (reply.fingerprint !== fingerprint) throw unexpected(`${what} to have the fingerprint that was written`);
}

function unexpected(what: string): TransferCallbackError {
  return new TransferCallbackError('STORE_REPLY_UNEXPECTED', `Expected ${what}.`);
}
