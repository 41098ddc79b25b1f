import { firstRetryMs } from './service.js';

/**
 * Machine-readable reason. Compare `code`, not the class: the package may be loaded twice, as ESM and as CommonJS.
 */
export type TransferCallbackErrorCode =
  /** An option does not fit; thrown while a receiver, router, listener, store or verifier is made. */
  | 'INVALID_ARGUMENT'
  /** Another middleware has read the request's body and left it neither in `request.body` nor in `request.rawBody`. */
  | 'BODY_CONSUMED'
  /** The store did not answer within `storeTimeoutMs`. */
  | 'STORE_TIMEOUT'
  /** The store holds something under the callback's key that it did not write. */
  | 'STORE_RECORD_UNREADABLE'
  /** The store, or its client, replied with something that it may not reply with. No handler was run for it. */
  | 'STORE_REPLY_UNEXPECTED'
  /** The store has no `read` or no `forget`, which it may leave out. */
  | 'STORE_UNSUPPORTED'
  /** The handler did not settle within `handlerTimeoutMs`. */
  | 'HANDLER_TIMEOUT'
  /** A verifier did not settle within `verifyTimeoutMs`. */
  | 'VERIFY_TIMEOUT'
  /** `confirm` did not settle within `confirmTimeoutMs`. */
  | 'CONFIRM_TIMEOUT'
  /** `confirm` did not return the callback it was asked about. */
  | 'UNCONFIRMED'
  /** The lease passed to another delivery while the handler was running. */
  | 'LEASE_LOST'
  /** The handler tried to end the transaction of a transactional store, or has ended it. */
  | 'TRANSACTION_CONTROL'
  /** The receiver is closing. */
  | 'CLOSING'
  /** The handler asked to be called again later. */
  | 'RETRY_LATER';

/** Thrown or reported by the receiver, the stores and the verifiers. */
export class TransferCallbackError extends Error {
  readonly code: TransferCallbackErrorCode;

  constructor(code: TransferCallbackErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'TransferCallbackError';
    this.code = code;
  }
}

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

export interface RetryLaterOptions extends ErrorOptions {
  /** Default 30 000, the service's own first pause (service §6.3). */
  retryAfterMs?: number | undefined;
}

/** By its code: the class may have been loaded twice, as ESM and as CommonJS. */
export function isRetryLater(error: unknown): error is RetryLater {
  try {
    const { code, retryAfterMs } = error as Partial<RetryLater>;
    return error instanceof Error && code === 'RETRY_LATER' && Number.isInteger(retryAfterMs);
  } catch {
    return false; // Nothing was thrown, or what was cannot be looked at.
  }
}

/** The longest delay that a Node timer can keep; a longer one would fire immediately. */
export const maxTimerMs = 2_147_483_647;

/** The error for an option that does not fit: names the option, the wish and the value. */
export function invalidArgument(option: string, wish: string, value: unknown): TransferCallbackError {
  return new TransferCallbackError('INVALID_ARGUMENT', `Expected \`${option}\` to be ${wish}, got ${shown(value)}.`);
}

/** The same where the value may be a secret, perhaps put into the wrong place: says no more of it than its kind. */
export function invalidSecret(option: string, wish: string, value: unknown): TransferCallbackError {
  const got =
    typeof value === 'string'
      ? `a string of ${value.length} characters`
      : typeof value === 'number'
        ? 'a number'
        : shown(value);
  return new TransferCallbackError('INVALID_ARGUMENT', `Expected \`${option}\` to be ${wish}, got ${got}.`);
}

/** Returns `value` if it is a whole number from `min` to `max`, and throws INVALID_ARGUMENT otherwise. */
export function wholeNumber(option: string, value: unknown, min: number, max = maxTimerMs): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return value;
  throw invalidArgument(option, `a whole number from ${min} to ${max}`, value);
}

/** Throws INVALID_ARGUMENT if `options` is not an object or has a key that is not one of `known`. */
export function onlyKnownOptions(options: unknown, known: readonly string[]): void {
  if (typeof options !== 'object' || options === null) throw invalidArgument('options', 'an object', options);
  for (const name of Object.keys(options)) {
    if (known.includes(name)) continue;
    throw new TransferCallbackError('INVALID_ARGUMENT', `Unknown option \`${name}\`; known are ${known.join(', ')}.`);
  }
}

function shown(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value);
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'object' && value !== null) return 'an object';
  return typeof value === 'function' ? 'a function' : String(value);
}
