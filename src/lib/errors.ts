/**
 * Machine-readable reason. Compare `code`, not the class: the package may be loaded twice, as ESM and as CommonJS.
 */
export type TransferCallbackErrorCode =
  /** An option or an argument is invalid. */
  | 'INVALID_ARGUMENT'
  /** Your app has read the request's body, and what it has left is not enough. */
  | 'BODY_CONSUMED'
  /** The store did not reply within `storeTimeoutMs`. */
  | 'STORE_TIMEOUT'
  /** The store found a value under the callback's key that it did not write. */
  | 'STORE_RECORD_UNREADABLE'
  /** The store, or its client, replied with an unexpected value. No handler was run for it. */
  | 'STORE_REPLY_UNEXPECTED'
  /** The store does not implement `read` or `forget`, which are optional. */
  | 'STORE_UNSUPPORTED'
  /** The handler did not finish within `handlerTimeoutMs`. */
  | 'HANDLER_TIMEOUT'
  /** A handler on a transactional store has not used `context.tx`. Only logged. */
  | 'HANDLER_WITHOUT_TX'
  /** A verifier did not finish within `verifyTimeoutMs`. */
  | 'VERIFY_TIMEOUT'
  /** `confirm` did not finish within `confirmTimeoutMs`. */
  | 'CONFIRM_TIMEOUT'
  /** `confirm` returned something other than the callback with the same id, event and facts. */
  | 'UNCONFIRMED'
  /** The claim ended, or passed to another delivery, while the handler was running. */
  | 'LEASE_LOST'
  /** A query of the handler's `tx` was refused: it would have ended the transaction, or the handler had finished. */
  | 'TRANSACTION_CONTROL'
  /** The table of a SQL store does not exist. */
  | 'NO_TABLE'
  /** The receiver is closing. */
  | 'CLOSING'
  /** The handler asked to be called again later. */
  | 'RETRY_LATER';

const page = 'node_modules/transfer-callbacks/docs/errors.md';

/**
 * Appends to a message the section of the documentation that explains the code. The message of INVALID_ARGUMENT has the
 * code to write instead, and the message of RETRY_LATER is the handler's own.
 */
export function withSection(code: string, message: string): string {
  if (code === 'INVALID_ARGUMENT' || code === 'RETRY_LATER') return message;
  // A message may repeat the message of its cause, which leads to another section.
  const sentence = (message.split(` See ${page}#`)[0] ?? '').replace(/\.{1,2}$/, '');
  return `${sentence}. See ${page}#${code.toLowerCase()}.`;
}

/**
 * Returns the thrown value, or an error in place of `undefined`: an outcome without `error` means that nothing was
 * thrown.
 */
export function toReason(thrown: unknown): unknown {
  return thrown === undefined ? new Error('`undefined` was thrown in place of an error.') : thrown;
}

/** How many causes of causes are listed. A chain of causes may lead back to its beginning. */
const deepestCause = 10;

/** Returns an error and its causes, the outermost first, however libraries have wrapped them. */
export function listCauses(error: unknown): readonly Readonly<Record<string, unknown>>[] {
  const found: Record<string, unknown>[] = [];
  for (let each = error; typeof each === 'object' && each !== null && found.length < deepestCause;) {
    const known = each as Record<string, unknown>;
    found.push(known);
    each = known.cause ?? known.parent;
  }
  return found;
}

/**
 * Thrown or reported by every part of the package. Only the client's requests throw `TransferClientError`.
 *
 * @example
 * const check = await receiver.check();
 * if (!check.ok && (check.error as TransferCallbackError).code === 'STORE_TIMEOUT') process.exit(1);
 */
export class TransferCallbackError extends Error {
  readonly code: TransferCallbackErrorCode;
  /** The option or argument that does not fit. Set with INVALID_ARGUMENT, if it is a single one. */
  declare readonly option?: string;
  /** What the option should have been. */
  declare readonly expected?: string;
  /** What was given: its kind, and its content only if that is certainly no secret. */
  declare readonly got?: string;
  /** The code to write instead, if there is one. */
  declare readonly write?: string;

  constructor(
    code: TransferCallbackErrorCode,
    message: string,
    options?: ErrorOptions,
    invalid?: Pick<TransferCallbackError, 'option' | 'expected' | 'got' | 'write'>,
  ) {
    super(withSection(code, message), options);
    this.name = 'TransferCallbackError';
    this.code = code;
    Object.assign(this, invalid);
  }
}
