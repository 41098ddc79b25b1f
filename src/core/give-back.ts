import { toReason } from '../lib/errors.js';
import { AfterCommit } from './after-commit.js';
import { toReversalKey, type CallbackShape, type OtherEvent } from './callback.js';
import { callStore } from './claim/call-store.js';
import { HeldClaim } from './claim/held-claim.js';
import type { LineEnd } from './claim/line.js';
import type { Delivery } from './delivery.js';
import { handleClaimed, runHandler } from './handle.js';
import { requireRecord } from './inspect.js';
import type { Ending } from './outcomes.js';
import type { ReceiverParts } from './parts.js';

/**
 * Processes a failure or a reversal of a service that takes successes back. Each gives the money of a transfer back, so
 * only one of them is handled, once. Beside the record of the transfer there is one of what was given back. The reversal
 * of a success runs under the claim of the second record, and every other delivery under the claim of the first. The
 * second record is read before, because it outlives a success that expires, is forgotten, or is recorded late over a
 * reversal. Never rejects.
 */
export async function giveBack<C extends CallbackShape, Tx>(
  delivery: Delivery<C | OtherEvent>,
  parts: ReceiverParts<C, Tx>,
): Promise<Ending> {
  const { lines, options } = parts;
  const reversalKey = await toReversalKey(delivery.id);
  const waitEndsAt = performance.now() + options.inFlightWaitMs;
  // All waits together take at most `inFlightWaitMs`.
  const claim = (key: string): Promise<Claimed<Tx>> =>
    lines.claim(delivery, key, Math.max(0, Math.ceil(waitEndsAt - performance.now())));
  const claimReversal = (): Promise<Claimed<Tx>> => claim(reversalKey);

  const before = await findReversal(reversalKey, claimReversal, parts);
  if (before !== undefined) return handleClaimed(delivery, before, options);
  const claimed = await claim(delivery.key);
  if (claimed instanceof HeldClaim) return runBeside(delivery, claimed, { reversalKey, claimReversal }, parts);
  const isTakenBack = claimed.state === 'settled' && delivery.reverses(claimed.fingerprint);
  return handleClaimed(delivery, isTakenBack ? await claimReversal() : claimed, options);
}

type Claimed<Tx> = HeldClaim<Tx> | LineEnd;

/** Resolves with what was given back, or with how the wait for another delivery ends. `undefined` if there is neither. */
async function findReversal<C extends CallbackShape, Tx>(
  key: string,
  claimReversal: () => Promise<Claimed<Tx>>,
  parts: ReceiverParts<C, Tx>,
): Promise<LineEnd | undefined> {
  const found = await readRecord(key, parts);
  if (found?.state !== 'in_progress') return found;
  const claimed = await claimReversal();
  if (!(claimed instanceof HeldClaim)) return claimed;
  await claimed.release();
  return undefined;
}

/** Resolves with `undefined` if there is no record. */
async function readRecord<C extends CallbackShape, Tx>(
  key: string,
  { options: { store, storeTimeoutMs } }: ReceiverParts<C, Tx>,
): Promise<LineEnd | undefined> {
  try {
    const record = requireRecord(await callStore(storeTimeoutMs, async () => store.read?.(key)));
    if (record.state === 'claimed') return { state: 'in_progress' };
    return record.state === 'settled' ? record : undefined;
  } catch (error) {
    return { state: 'unavailable', error: toReason(error) };
  }
}

/** Runs the handler under the claim of the transfer, and records what was given back. */
async function runBeside<C extends CallbackShape, Tx>(
  delivery: Delivery<C | OtherEvent>,
  claim: HeldClaim<Tx>,
  { reversalKey, claimReversal }: { reversalKey: string; claimReversal: () => Promise<Claimed<Tx>> },
  parts: ReceiverParts<C, Tx>,
): Promise<Ending> {
  const { options, rules } = parts;
  if (rules.undoesWrites) {
    // While this delivery waited, the transfer may have been reversed, and its record forgotten.
    const since = delivery.hasWaited ? await readRecord(reversalKey, parts) : undefined;
    if (since !== undefined) {
      await claim.release();
      return handleClaimed(delivery, since, options);
    }
    // Claimed afterwards, because two claims at the same time would need two connections of one pool.
    return runHandler(delivery, claim, options, async (hasSucceeded) => {
      if (hasSucceeded && delivery.status === 'REVERSED') await record(await claimReversal());
    });
  }
  // Claimed before, because a late success may replace the claim of the transfer while the handler runs.
  const reversal = await claimReversal();
  if (reversal instanceof HeldClaim) {
    return runHandler(delivery, claim, options, (hasSucceeded) =>
      hasSucceeded ? record(reversal) : reversal.release(),
    );
  }
  await claim.release();
  return handleClaimed(delivery, reversal, options);
}

/** Settles the record of what was given back. Without it, the record of the transfer tells the same while it lives. */
async function record<Tx>(reversal: Claimed<Tx>): Promise<void> {
  if (!(reversal instanceof HeldClaim)) return;
  const { outcome } = await reversal.settle(new AfterCommit());
  if (outcome !== 'processed') await reversal.release();
}
