import { onlyKnownOptions } from '../lib/checks.js';
import { parseJson } from '../lib/text.js';
import { TransferClientError } from './errors.js';
import { requireSuccess, sendWithRetries, toPathSegment, type ServiceAccess } from './request.js';
import { translate } from './translate.js';

/**
 * A transaction as it was read. Final with `status` SUCCESS or FAILED; other statuses are not documented (service §3).
 *
 * @example
 * const readTransaction = (body: unknown): Transaction | undefined => (body as { result?: Transaction }).result;
 */
export interface Transaction {
  id: string;
  externalId: string;
  status: string;
  [field: string]: unknown;
}

export async function getTransaction(
  access: ServiceAccess,
  readTransaction: (body: unknown) => Transaction | undefined,
  idOrExternalId: string,
  options?: { signal?: AbortSignal | undefined },
): Promise<Transaction> {
  onlyKnownOptions(options ?? {}, ['signal'], { example: 'getTransaction(id, { signal })' });
  const { signal } = options ?? {};
  const path = `/${toPathSegment(idOrExternalId)}`;
  signal?.throwIfAborted();
  const result = await sendWithRetries(access, path, signal);
  signal?.throwIfAborted();

  const { status, text } = requireSuccess(result, access, 'UNAVAILABLE', 'The transfer could not be read.');
  const unreadable = (message: string): TransferClientError =>
    new TransferClientError('UNREADABLE_RESPONSE', message, { status });
  if (text === undefined) throw unreadable('The response is longer than 1 MiB.');
  const transaction = translate('readTransaction', () => readTransaction(parseJson(text)), status) ?? undefined;
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
