import { hasMethods } from '../lib/checks.js';
import { messageOf } from '../lib/text.js';
import { TransferClientError } from './errors.js';

/**
 * Calls your own translation of a response. Throws UNREADABLE_RESPONSE if the translation throws or returns a
 * promise: the service is available, and the next transfer may be read. `status` is that of the response, if it is
 * known.
 */
export function translate<T>(option: 'readTransaction' | 'toCallback' | 'schema', call: () => T, status?: number): T {
  const unreadable = (message: string, cause?: unknown): TransferClientError =>
    new TransferClientError('UNREADABLE_RESPONSE', message, { status, cause });
  let translated: T;
  try {
    translated = call();
  } catch (cause) {
    throw unreadable(`\`${option}\` threw: ${messageOf(cause)}`, cause);
  }
  if (!hasMethods(translated, 'then')) return translated;
  // This promise is not awaited: an unhandled rejection would end the process.
  Promise.resolve(translated).catch(() => undefined);
  throw unreadable(`Expected \`${option}\` to be synchronous, got a promise.`);
}
