import type { QueryOptions, Transaction, TransferClientOptions } from './client.js';
import { TransferClientError } from './errors.js';
import { parseJson, requireSuccess, sendWithRetries, type ServiceAccess } from './request.js';

export async function getTransaction(
  access: ServiceAccess,
  readTransaction: NonNullable<TransferClientOptions['readTransaction']>,
  idOrExternalId: string,
  options?: QueryOptions,
): Promise<Transaction> {
  const { signal } = options ?? {};
  const path = `/${toPathSegment(idOrExternalId)}`;
  signal?.throwIfAborted();
  const result = await sendWithRetries(access, path, signal);
  signal?.throwIfAborted();

  const { status, text } = requireSuccess(result, access, 'UNAVAILABLE', 'The transfer could not be read.');
  const unreadable = (message: string, cause?: unknown): TransferClientError =>
    new TransferClientError('UNREADABLE_ANSWER', message, { status, cause });
  if (text === undefined) throw unreadable('The response is longer than 1 MiB.');
  let transaction: Transaction | undefined;
  try {
    transaction = readTransaction(parseJson(text));
  } catch (cause) {
    throw unreadable('`readTransaction` threw.', cause);
  }
  if (transaction !== undefined) return transaction;
  throw unreadable(
    'No transaction with id, externalId and status was found in the response, under `data` or at the top. ' +
      'Use `readTransaction` to find it.',
  );
}

/** Throws INVALID_ID for an id that a URL could read as several segments or as a way up, as `encodeURIComponent('..')`. */
export function toPathSegment(id: unknown): string {
  if (typeof id === 'string' && id.length <= 255 && /^(?!\.{1,2}$)[^/\\?#%\p{Cc}\p{Cf}\p{Cs}]+$/u.test(id)) {
    return encodeURIComponent(id);
  }
  throw new TransferClientError(
    'INVALID_ID',
    'An id is 1 to 255 characters, not `.` or `..`, and has no slash, backslash, ?, #, % or control character.',
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
