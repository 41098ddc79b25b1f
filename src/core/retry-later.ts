import { wholeNumber } from './checks.js';
import { TransferCallbackError } from './errors.js';
import { firstRetryMs } from './service.js';

/**
 * Thrown by a handler that cannot do its work now: the delivery is answered 503 with Retry-After, the claim is
 * released, and the service's next attempt runs the handler again. Mind that the service makes 4 attempts in all
 * (service §6.3) and does not document that it reads Retry-After.
 */
export class RetryLater extends TransferCallbackError {
  /** What Retry-After says, in milliseconds; sent in whole seconds, rounded up. */
  readonly retryAfterMs: number;

  constructor(message = 'The handler asked to be called again later.', options?: RetryLaterOptions | null) {
    const { retryAfterMs = firstRetryMs, ...rest } = options ?? {};
    super('RETRY_LATER', message, rest);
    this.name = 'RetryLater';
    this.retryAfterMs = wholeNumber('retryAfterMs', retryAfterMs, 1);
  }
}

/** Options of `RetryLater`. */
export interface RetryLaterOptions extends ErrorOptions {
  /** Default 30 000, the service's own first pause (service §6.3). */
  retryAfterMs?: number | undefined;
}

/** Whether a handler threw `RetryLater`. Compares the code: the class may be loaded twice, as ESM and as CommonJS. */
export function isRetryLater(error: unknown): error is RetryLater {
  try {
    const { code, retryAfterMs } = error as Partial<RetryLater>;
    return error instanceof Error && code === 'RETRY_LATER' && Number.isInteger(retryAfterMs);
  } catch {
    return false; // Nothing was thrown, or what was cannot be looked at.
  }
}
