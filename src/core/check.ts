import { TransferCallbackError, toReason } from '../lib/errors.js';
import { callStore, releaseUnheld, type TimedRequest } from './claim/call-store.js';
import { claimCallback } from './claim/claim-callback.js';
import type { ClaimParts } from './claim/parts.js';
import { requireRecord } from './inspect.js';
import { leastRetentionMs } from './options.js';
import type { Claim, ClaimReply, StoreRecord } from './store.js';

/** Whether the store keeps claims and records, and how long the check took, in milliseconds. */
export type StoreProbe =
  // With `error`, so that `ok` narrows it without `strict`, too.
  { ok: true; storeMs: number; error?: undefined } | { ok: false; error: unknown };

/** What the check needs of the receiver. */
type Parts<Tx> = ClaimParts<Tx> & { readonly options: { readonly onReversed?: unknown } };

/**
 * Tries all that the store does for a callback, with a new key, and lets the store check itself. Beside `onReversed` it
 * claims both records. Never rejects.
 */
export async function checkStore<Tx>(token: string, parts: Parts<Tx>): Promise<StoreProbe> {
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

async function tryStore<Tx>(token: string, parts: Parts<Tx>): Promise<void> {
  const { store, leaseMs, storeTimeoutMs, logger, onReversed } = parts.options;
  const times = { leaseMs, retentionMs: leastRetentionMs, timeoutMs: storeTimeoutMs, queueMs: storeTimeoutMs };
  const request = { token, fingerprint, ...times, ...(onReversed !== undefined && { record: 'both' as const }) };
  const key = `check-${crypto.randomUUID()}`;
  // First: the store names what is missing in better words.
  for (const warning of (await store.check?.(key, request)) ?? []) logger.warn({}, warning);
  await tryKey(key, request, parts);
}

/** Claims and releases the key, and then settles it, reads the record, and forgets it. */
async function tryKey<Tx>(key: string, request: TimedRequest, { options, rules }: ClaimParts<Tx>): Promise<void> {
  const { store } = options;
  const claimKey = (token: string): Promise<ClaimReply<Tx>> =>
    claimCallback(store, { key, id: key }, { ...request, token }, rules);
  const call = <T>(method: 'release' | 'settle', token: string, send: () => Promise<T>): Promise<T> =>
    callStore(request.timeoutMs, send, { method, token, id: key });
  // Each claim has a token of its own: a store may still know one that was released.
  const [first, second, third] = [request.token, `${request.token}.2`, `${request.token}.3`];

  const released = requireGranted('a claim of a new key', await claimKey(first));
  try {
    // A store writes a new key and reads a taken one. A user without the right to read could only write.
    requireGranted('the same claim, sent twice,', await claimKey(first));
  } catch (error) {
    releaseUnheld(released, key, request);
    throw error;
  }
  await call('release', first, () => released.release());

  const handled = requireGranted('a claim of a released key', await claimKey(second));
  try {
    await call('settle', second, () => handled.settle());
  } catch (error) {
    releaseUnheld(handled, key, request);
    throw error;
  }
  const copy = await claimKey(third);
  if (copy.state === 'claimed') releaseUnheld(copy.claim, key, request);
  requireHandled('a claim of a handled key', copy);
  for (const record of request.record === 'both' ? ([undefined, 'reversal'] as const) : [undefined]) {
    if (store.read !== undefined) requireHandled('its record', requireRecord(await store.read(key, record)));
    if (store.forget !== undefined && !(await store.forget(key, fingerprint, record))) {
      throw unexpected('`store.forget` of a handled key to resolve with `true`, got `false`');
    }
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
