import { invalidArgument, onlyKnownOptions, wholeNumber } from '../lib/checks.js';
import { TransferCallbackError } from '../lib/errors.js';
import { firstRetryMs } from './service.js';

/**
 * Throw this from a handler that cannot do its work now. The endpoint responds 503 with Retry-After, the claim is
 * released, and the service's next attempt runs the handler again. The service makes 4 attempts in all (service §6.3),
 * and does not document whether it reads Retry-After. Throws INVALID_ARGUMENT if its arguments are wrong: the handler
 * fails, and the service retries as well.
 *
 * @example
 * async function onSuccess() {
 *   if (!(await isLedgerOpen())) throw new RetryLater('The ledger is closed', { retryAfterMs: 60_000 });
 * }
 */
export class RetryLater extends TransferCallbackError {
  /** The value of Retry-After in milliseconds. It is sent in whole seconds, rounded up. */
  readonly retryAfterMs: number;

  constructor(message = 'The handler asked to be called again later.', options?: RetryLaterOptions | null) {
    const example = `new RetryLater('The ledger is closed', { retryAfterMs: ${firstRetryMs} })`;
    if (typeof message !== 'string') throw invalidArgument('message', 'a string', message, example);
    onlyKnownOptions(options ?? {}, ['retryAfterMs', 'cause'], { example });
    const { retryAfterMs = firstRetryMs, ...rest } = options ?? {};
    super('RETRY_LATER', message, rest);
    this.name = 'RetryLater';
    this.retryAfterMs = wholeNumber('retryAfterMs', retryAfterMs, { min: 1, example: firstRetryMs });
  }
}

/** Options of `RetryLater`. */
export interface RetryLaterOptions extends ErrorOptions {
  /**
   * When to come again, in milliseconds. The default is the service's own first pause (service §6.3).
   * @default 30_000
   */
  retryAfterMs?: number | undefined;
}

/** Returns whether a handler threw `RetryLater`. Compares the code: the class may be loaded as ESM and as CommonJS. */
export function isRetryLater(error: unknown): error is RetryLater {
  try {
    const { code, retryAfterMs } = error as Partial<RetryLater>;
    return error instanceof Error && code === 'RETRY_LATER' && Number.isInteger(retryAfterMs);
  } catch {
    return false; // The handler threw `undefined` or `null`, or a value whose properties throw.
  }
}
