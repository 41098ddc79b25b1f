import { channel } from 'node:diagnostics_channel';
import { invalidArgument, onlyKnownOptions } from '../lib/checks.js';
import { callStore, type ClaimParts } from './claim/call-store.js';
import { showFingerprint, type TransferCallbackFacts } from './facts.js';
import { readRecords, requireId, toTargets, unsupported, type FoundRecord } from './records.js';

/** Options of `forget`: the record that was seen, who forgets it, and why. */
export interface ForgetOptions {
  /** The fingerprint that `inspect` showed. A record with another one is kept. */
  fingerprint: string;
  /** Who forgets it, for the log. */
  by: string;
  /** Why, for the log. */
  reason: string;
}

/** The message on the diagnostics channel `transfer-callbacks:forgotten`. Frozen. */
export interface ForgottenCallback {
  /** The delivery whose handler had succeeded, if the store knows it. */
  readonly delivery?: string;
  readonly id: string;
  readonly recorded: TransferCallbackFacts | undefined;
  /** Which records of the transfer: a failure and a reversal have two. Only beside `onReversed`. */
  readonly records?: readonly RecordName[];
  /** The facts of the other record of the transfer, which stays: of its success, or of its reversal. */
  readonly stays?: TransferCallbackFacts | undefined;
  readonly by: string;
  readonly reason: string;
}

type RecordName = 'transfer' | 'reversal';

const forgottenChannel = channel('transfer-callbacks:forgotten');

/** Forgets what `forget` of the receiver forgets: never a claim, or a record other than the one that was seen. */
export async function forgetCallback(id: string, options: ForgetOptions, parts: ClaimParts): Promise<boolean> {
  requireId(id);
  onlyKnownOptions(options, ['fingerprint', 'by', 'reason']);
  const { fingerprint, by, reason } = options;
  for (const [name, text] of Object.entries({ fingerprint, by, reason })) requireText(name, text);
  const { store, logger, storeTimeoutMs, onReversed } = parts.options;
  if (store.forget === undefined) throw unsupported('forget');
  const isSeen = ({ record }: FoundRecord): boolean => record.state === 'handled' && record.fingerprint === fingerprint;
  const found = await readRecords(id, parts, isSeen);
  const seen = found.filter(isSeen);
  // A store without `read` compares the fingerprint itself.
  const targets = found.length > 0 ? seen : toTargets(id, parts);
  if (targets.length === 0) return false;
  const { delivery } = (seen[0]?.record ?? {}) as { delivery?: string };
  const other = found.find((each) => each.record.state === 'handled' && !isSeen(each))?.record;
  const details = {
    ...(delivery !== undefined && { delivery }),
    id,
    recorded: showFingerprint(fingerprint),
    ...(other?.state === 'handled' && { stays: showFingerprint(other.fingerprint) }),
    by,
    reason,
  };
  // Without this line, no log would explain why a handler ran twice. If it cannot be written, forget nothing.
  await logger.warnOrReject(details, 'A handled callback is about to be forgotten.');
  const forgetAll = (): Promise<unknown[]> =>
    Promise.all(targets.map(async ({ key, name }) => store.forget?.(key, fingerprint, name)));
  const replies = await callStore(storeTimeoutMs, forgetAll).catch((error: unknown) => {
    logger.error({ ...details, err: error }, 'A handled callback may have been forgotten: the store failed.');
    throw error;
  });
  // A store in JavaScript may resolve with any value.
  const ended = targets.filter((_, index) => replies[index] === true);
  if (ended.length === 0) {
    logger.warn(details, 'A handled callback was not forgotten: its record has changed.');
    return false;
  }
  const records = ended.map<RecordName>(({ name }) => name ?? 'transfer');
  const forgotten: ForgottenCallback = Object.freeze({ ...details, ...(onReversed !== undefined && { records }) });
  logger.warn(forgotten, 'A handled callback was forgotten; its next delivery runs the handler.');
  forgottenChannel.publish(forgotten);
  return true;
}

function requireText(option: string, value: unknown): void {
  if (typeof value !== 'string' || value.trim() === '')
    throw invalidArgument(option, 'a string that is not empty', value);
}
