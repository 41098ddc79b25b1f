import type { Transaction } from '../core/payout-service.js';
import { hasMethods, onlyKnownOptions } from '../lib/checks.js';
import { messageOf, parseJson } from '../lib/text.js';
import { requireSignal } from './checks.js';
import { TransferClientError } from './errors.js';
import { requireSuccess, sendWithRetries, toPathSegment, type ServiceAccess } from './request.js';

export async function getTransaction(
  access: ServiceAccess,
  readTransaction: (body: unknown) => Transaction | undefined,
  idOrExternalId: string,
  options?: { signal?: AbortSignal | undefined },
): Promise<Transaction> {
  onlyKnownOptions(options ?? {}, ['signal'], { example: 'getTransaction(id, { signal })' });
  const { signal } = options ?? {};
  requireSignal(signal);
  const path = `/${toPathSegment(idOrExternalId)}`;
  signal?.throwIfAborted();
  const result = await sendWithRetries(access, path, signal);
  signal?.throwIfAborted();

  const { status, text } = requireSuccess(result, access, 'UNAVAILABLE', 'The transfer could not be read.');
  const unreadable: Unreadable = (message, cause) =>
    new TransferClientError('UNREADABLE_RESPONSE', message, { status, cause });
  if (text === undefined) throw unreadable('The response is longer than 1 MiB.');
  const transaction = translate(() => readTransaction(parseJson(text)), unreadable) ?? undefined;
  if (transaction !== undefined) return transaction;
  throw unreadable(
    'No transaction with id, externalId and status was found in the response, under `data` or at the top. ' +
      'Use `readTransaction` to find it.',
  );
}

/** Looks under `data` and at the top. */
export function findTransaction(body: unknown): Transaction | undefined {
  const candidates = [(body as { data?: unknown } | null | undefined)?.data, body];
  return candidates.find((candidate): candidate is Transaction => {
    const { id, externalId, status } = (candidate ?? {}) as Partial<Record<keyof Transaction, unknown>>;
    return [id, externalId, status].every((field) => typeof field === 'string');
  });
}

type Unreadable = (message: string, cause?: unknown) => TransferClientError;

/**
 * Calls your own translation of a response. Throws what `unreadable` returns if the translation throws or returns a
 * promise: the service is available, and the next transfer may be read.
 */
function translate<T>(call: () => T, unreadable: Unreadable): T {
  let translated: T;
  try {
    translated = call();
  } catch (cause) {
    throw unreadable(`\`readTransaction\` threw: ${messageOf(cause)}`, cause);
  }
  if (!hasMethods(translated, 'then')) return translated;
  // This promise is not awaited: an unhandled rejection would end the process.
  Promise.resolve(translated).catch(() => undefined);
  throw unreadable('Expected `readTransaction` to be synchronous, got a promise.');
}
