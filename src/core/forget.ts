import { channel } from 'node:diagnostics_channel';
import { invalidArgument, onlyKnownOptions } from './checks.js';
import { showFingerprint, type TransferCallbackFacts } from './facts.js';
import { requireId, unsupported, type Inspection } from './inspection.js';
import type { SafeLogger } from './logger.js';
import type { CallbackStore } from './store.js';

/** Options of `forget`: the record that was seen, who forgets it, and why. */
export interface ForgetOptions {
  /** The fingerprint that `inspect` showed. A record with another one is kept. */
  settled: string;
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
  readonly settled: TransferCallbackFacts | undefined;
  readonly by: string;
  readonly reason: string;
}

const forgottenChannel = channel('transfer-callbacks:forgotten');

/**
 * Forgets a settled callback, so that its next delivery runs the handler again. Never forgets a claim, or a record other
 * than the one that was seen. Resolves with whether the callback was forgotten.
 */
export async function forgetCallback<Tx>(
  id: string,
  options: ForgetOptions,
  store: CallbackStore<Tx>,
  inspection: Inspection<Tx>,
  logger: SafeLogger,
): Promise<boolean> {
  requireId(id);
  onlyKnownOptions(options, ['settled', 'by', 'reason']);
  const { settled, by, reason } = options;
  for (const [name, text] of Object.entries({ settled, by, reason })) requireText(name, text);
  if (store.forget === undefined) throw unsupported('forget');
  const record = store.read === undefined ? undefined : await inspection.read(id);
  if (record !== undefined && (record.state !== 'settled' || record.fingerprint !== settled)) return false;
  const delivery = record?.delivery;
  const details: ForgottenCallback = Object.freeze({
    ...(delivery === undefined ? {} : { delivery }),
    id,
    settled: showFingerprint(settled),
    by,
    reason,
  });
  // Without this line, no log would explain why a handler ran twice. If it cannot be written, forget nothing.
  await logger.warnOrReject(details, 'A settled transfer callback is about to be forgotten.');
  const isForgotten = await forgetAndLog(id, settled, details, inspection, logger);
  if (isForgotten) forgottenChannel.publish(details);
  return isForgotten;
}

async function forgetAndLog<Tx>(
  id: string,
  settled: string,
  details: ForgottenCallback,
  inspection: Inspection<Tx>,
  logger: SafeLogger,
): Promise<boolean> {
  try {
    const isForgotten = await inspection.forget(id, settled);
    logger.warn(
      details,
      isForgotten
        ? 'A settled transfer callback was forgotten; its next delivery runs the handler.'
        : 'A settled transfer callback was not forgotten: its record has changed.',
    );
    return isForgotten;
  } catch (error) {
    logger.error({ ...details, err: error }, 'A settled transfer callback may have been forgotten: the store failed.');
    throw error;
  }
}

function requireText(option: string, value: unknown): void {
  if (typeof value !== 'string' || value.trim() === '')
    throw invalidArgument(option, 'a text that is not empty', value);
}
