import { TransferCallbackError, toReason } from '../lib/errors.js';
import {
  callClaim,
  callStore,
  releaseUnheld,
  claimCallback,
  type TimedRequest,
  type ClaimParts,
} from './claim/call-store.js';
import { requireRecord } from './records.js';
import type { Claim, ClaimReply, StoreRecord } from './store.js';
import { leastRetentionMs } from './times.js';

/** Whether the store keeps claims and records, and how long the check took, in milliseconds. */
export type StoreProbe =
  // With `error`, so that `ok` narrows it even without `strict`.
  { ok: true; storeMs: number; error?: undefined } | { ok: false; error: unknown };

/** Tries all that the store does for a callback, and lets the store check itself. Never rejects. */
export async function checkStore(token: string, parts: ClaimParts): Promise<StoreProbe> {
  const startedAt = performance.now();
  try {
    await callStore(parts.options.storeTimeoutMs, () => tryStore(token, parts));
    return { ok: true, storeMs: performance.now() - startedAt };
  } catch (error) {
    return { ok: false, error: toReason(error) };
  }
}

/** It is JSON as the fingerprint of a callback, because a plugin of the app might parse it. */
const fingerprint = '["SUCCESS",1,"XAF","check"]';

async function tryStore(token: string, parts: ClaimParts): Promise<void> {
  const { store, leaseMs, storeTimeoutMs, logger, onReversed } = parts.options;
  const times = { leaseMs, retentionMs: leastRetentionMs, timeoutMs: storeTimeoutMs, queueMs: storeTimeoutMs };
  const request = { token, fingerprint, ...times, ...(onReversed !== undefined && { record: 'both' as const }) };
  const key = `check-${crypto.randomUUID()}`;
  // First: the store names what is missing in better words.
  for (const warning of (await store.check?.(key, request)) ?? []) logger.warn({}, warning);
  await tryClaims(key, request, parts);
  for (const record of onReversed === undefined ? [undefined] : ([undefined, 'reversal'] as const)) {
    if (store.read !== undefined) requireState('its record', requireRecord(await store.read(key, record)), 'handled');
    if (store.forget !== undefined && !(await store.forget(key, fingerprint, record))) {
      throw unexpected('`store.forget` of a handled key to resolve with `true`, got `false`');
    }
  }
}

/** Claims and releases the key, then claims and settles it, and claims it once more. */
async function tryClaims(key: string, request: TimedRequest, { options }: ClaimParts): Promise<void> {
  let held: Claim<unknown> | undefined;
  const claim = async (of: TimedRequest, what: string, state: 'claimed' | 'handled'): Promise<void> => {
    const reply = await claimCallback(options.store, { key, id: key }, of);
    if (reply.state === 'claimed') held = reply.claim;
    requireState(what, reply, state);
  };
  const end = async (method: 'release' | 'settle', of: TimedRequest): Promise<void> => {
    if (held !== undefined) await callClaim(held, method, key, of);
  };
  // Each claim has a token of its own: a store may still know one that was released.
  const second = { ...request, token: `${request.token}.2` };
  const third = { ...request, token: `${request.token}.3` };
  try {
    await claim(request, 'a claim of a new key', 'claimed');
    // A store writes a new key and reads a taken one. A user without the right to read could only write.
    await claim(request, 'the same claim, sent twice,', 'claimed');
    await end('release', request);
    await claim(second, 'a claim of a released key', 'claimed');
    await end('settle', second);
    await claim(third, 'a claim of a handled key', 'handled');
  } catch (error) {
    if (held !== undefined) releaseUnheld(held, key, request);
    throw error;
  }
}

/** Throws STORE_REPLY_UNEXPECTED unless this is the state, with the fingerprint that was written. */
function requireState(what: string, reply: ClaimReply<unknown> | StoreRecord, state: 'claimed' | 'handled'): void {
  if (reply.state !== state) throw unexpected(`${what} to be ${state}, got ${reply.state}`);
  if (reply.state === 'handled' && reply.fingerprint !== fingerprint) {
    throw unexpected(`${what} to have the fingerprint that was written`);
  }
}

function unexpected(what: string): TransferCallbackError {
  return new TransferCallbackError('STORE_REPLY_UNEXPECTED', `Expected ${what}.`);
}
