import { toPrintable } from '../lib/text.js';

/** SUCCESS and FAILED in another case or with another ending, such as `success`, `SUCCESSFUL` and `Failure`. */
const nearlyFinal = /^(?:succe(?:ss|ed)|fail)[a-z]*$/i;

/** A guess: the final words of other services. The service documents its own two words only (service §3). */
const finalElsewhere =
  /^(?:completed?|done|paid|settled|reversed|refunded|returned|cancell?ed|rejected|declined|expired|error)$/i;

/** Returns a status for people to read. A service made by hand may give anything. */
export function toShownStatus(status: unknown): string {
  return toPrintable(String(status));
}

/** Whether a status reads as final, although it is none of the documented final words. */
export function seemsFinal(status: unknown): boolean {
  const word = String(status).trim();
  return nearlyFinal.test(word) || finalElsewhere.test(word);
}

/** Describes the status of a transfer that is not final. */
export function describeOpen(status: unknown): string {
  return `the service reports the status ${toShownStatus(status)}, which is not final`;
}

/** Advice about a status that should be one of the two final words. */
export const translateStatus =
  'If that is final, let `readTransaction` of the service translate it to SUCCESS or FAILED.';
