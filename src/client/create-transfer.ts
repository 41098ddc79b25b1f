import { onlyKnownOptions } from '../lib/checks.js';
import { parseWith, requireSchema, type StandardSchema } from '../lib/standard-schema.js';
import { parseJson, toPrintable } from '../lib/text.js';
import { requireSignal } from './checks.js';
import { TransferClientError } from './errors.js';
import { requireSuccess, sendOnce, toPathSegment, type ServiceAccess } from './request.js';

/**
 * The body of a creation. Only `callbackUrl` is documented (service §2.2); all fields are sent unchanged.
 *
 * @example
 * const callbackUrl = 'https://merchant.example/callbacks/transfers';
 * const request: TransferRequest = { callbackUrl, externalId: 'payout-1', amount: 15_000 };
 */
export interface TransferRequest {
  callbackUrl: string;
  /** Your own id of the transfer. Rejected with INVALID_ID if it is a string that `getTransaction` would reject. */
  externalId?: unknown;
  [field: string]: unknown;
}

/** Options of `createTransfer`. */
export interface CreateOptions<T> {
  /**
   * Checks and types the response.
   * @default none: the response as parsed
   */
  schema?: StandardSchema<T> | undefined;
  /**
   * Once the request has been sent, an abort rejects with OUTCOME_UNKNOWN.
   * @default none
   */
  signal?: AbortSignal | undefined;
}

export async function createTransfer<T>(
  access: ServiceAccess,
  request: unknown,
  options?: CreateOptions<T>,
): Promise<T> {
  onlyKnownOptions(options ?? {}, ['schema', 'signal']);
  const { schema, signal } = options ?? {};
  // After the request it would be too late to refuse them: the transfer would be created.
  if (schema !== undefined) requireSchema('schema', schema);
  requireSignal(signal);
  const { text, externalId } = serialise(request);
  // A transfer that cannot be queried must not be created: its outcome could never be looked up.
  if (typeof externalId === 'string') toPathSegment(externalId);
  signal?.throwIfAborted();

  const body = new Blob([text]);
  const result = await sendOnce(
    access,
    '/transfer',
    {
      method: 'POST',
      headers: { 'Content-Length': String(body.size) },
      // A stream, so that fetch cannot silently send the request twice, as it does after a 421.
      body: body.stream(),
      duplex: 'half',
    },
    signal,
  );
  const query = typeof externalId === 'string' ? `query it by its externalId, ${externalId}` : 'query it';
  const response = requireSuccess(
    result,
    access,
    'OUTCOME_UNKNOWN',
    `The transfer may have been created: ${query}, before anything else.`,
  );
  return parseResponse(response, schema, query);
}

/** Returns the JSON to send. Its content is checked, not the argument, which may have getters or a `toJSON`. */
function serialise(request: unknown): { text: string; externalId: unknown } {
  let text: string;
  let sent: { callbackUrl?: unknown; externalId?: unknown } | null;
  try {
    text = JSON.stringify(request);
    sent = JSON.parse(text) as typeof sent;
  } catch (cause) {
    throw new TransferClientError('INVALID_ARGUMENT', 'Expected `request` to be an object that JSON can express.', {
      cause,
    });
  }
  if (typeof sent?.callbackUrl !== 'string') {
    throw new TransferClientError(
      'INVALID_ARGUMENT',
      'Expected `request` to be an object with a string `callbackUrl`. ' +
        "Write `callbackUrl: 'https://merchant.example/callbacks/transfers'`.",
    );
  }
  return { text, externalId: sent.externalId };
}

/** Throws UNREADABLE_RESPONSE, whose message is that the transfer was accepted. */
function parseResponse<T>(
  { status, text }: { status: number; text: string | undefined },
  schema: CreateOptions<T>['schema'],
  query: string,
): T {
  const unreadable = (what: string, cause?: unknown): TransferClientError =>
    new TransferClientError('UNREADABLE_RESPONSE', `The transfer was accepted, but ${what}: ${query}.`, {
      status,
      cause,
    });
  if (text === undefined) throw unreadable('the response is longer than 1 MiB');
  const value = parseJson(text);
  if (value === undefined) throw unreadable('the response is not JSON');
  if (schema === undefined) return value as T;
  let parsed: ReturnType<typeof parseWith<T>>;
  try {
    parsed = parseWith(schema, value);
  } catch (cause) {
    throw unreadable('the schema threw', cause);
  }
  if ('value' in parsed) return parsed.value;
  const at = parsed.issues.map(({ path }) => path.map(String).join('.') || 'the top').join(', ');
  throw unreadable(`the response does not fit the schema, at ${toPrintable(at)}`);
}
