import { withSection } from '../lib/errors.js';

/** Machine-readable reason. Compare `code`, not the class: the package may be loaded twice, as ESM and as CommonJS. */
export type TransferClientErrorCode =
  /** An argument does not fit, or fetch blocks the port of the address. Nothing was sent. */
  | 'INVALID_ARGUMENT'
  /** The service cannot be queried by this id. Nothing was sent. */
  | 'INVALID_ID'
  /** The service refused the request, for example with 400 or 404. In HTTP that means that it has not acted. */
  | 'REFUSED'
  /**
   * A query got no usable response: no connection, no response in time, or a status that is neither a success nor a
   * refusal.
   */
  | 'UNAVAILABLE'
  /** A creation was sent, and the service may have acted on it. Query the transfer before anything else. */
  | 'OUTCOME_UNKNOWN'
  /** The service responded with 2xx, but with a body that cannot be used. A creation was accepted. */
  | 'UNREADABLE_RESPONSE'
  /** The transaction that was read is not final yet. */
  | 'NOT_FINAL'
  /** As many callbacks wait for `confirm` as it allows. Nothing was sent. */
  | 'BUSY'
  /** A transfer is final, and the receiver ended with another outcome than `processed` or `duplicate`. */
  | 'NOT_HANDLED';

/** The cases of service §5.4 in which the service refuses a request that it cannot authenticate. */
export type AuthenticationFault =
  | 'api_key_missing'
  | 'api_key_invalid'
  | 'api_secret_missing'
  | 'api_secret_wrong'
  | 'key_revoked'
  | 'merchant_inactive'
  | 'key_expired';

/** The body of a refusal, as documented (service §2.3). */
export interface ServiceErrorBody {
  error: true;
  statusCode: number;
  message: string;
  data: null;
}

/** The default of `authenticationFaults` is the faults that the documented service reports with this status. */
type Details = ErrorOptions &
  Partial<Pick<TransferClientError, 'status' | 'body' | 'retryAfterMs' | 'authenticationFaults'>>;

/**
 * Every error of a request, a confirmation or a reconciled transfer. Wrong options are a `TransferCallbackError` with
 * INVALID_ARGUMENT. Contains no key and no secret.
 *
 * @example
 * try {
 *   await service.createTransfer({ callbackUrl, externalId: 'payout-1' });
 * } catch (error) {
 *   if ((error as TransferClientError).code !== 'OUTCOME_UNKNOWN') throw error;
 *   await service.getTransaction('payout-1');
 * }
 */
export class TransferClientError extends Error {
  readonly code: TransferClientErrorCode;
  /** The HTTP status of the response; `undefined` when there was none. */
  readonly status: number | undefined;
  /** The body of the response, where it has the documented shape. */
  readonly body: ServiceErrorBody | undefined;
  /**
   * The authentication faults that the documented service reports with this status (service §5.4). It may mean
   * something else. A service that was defined has none.
   */
  readonly authenticationFaults: readonly AuthenticationFault[];
  /** The Retry-After of the response, in milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(code: TransferClientErrorCode, message: string, details: Details = {}) {
    const { status, body, retryAfterMs, authenticationFaults = faults[Number(status)] ?? [], ...rest } = details;
    super(withSection(code, message), rest);
    this.name = 'TransferClientError';
    this.code = code;
    this.status = status;
    this.body = body;
    this.authenticationFaults = authenticationFaults;
    this.retryAfterMs = retryAfterMs;
  }

  /** For logs. Leaves out `cause`, which may be an error of a driver, with the parameters of a query in it. */
  toJSON(): object {
    const { name, code, message, status, retryAfterMs } = this;
    return { name, code, message, status, retryAfterMs };
  }
}

/** By name: the class may be loaded twice. */
export function isClientError(thrown: unknown): thrown is TransferClientError {
  return thrown instanceof Error && thrown.name === 'TransferClientError';
}

const faults: Readonly<Record<number, readonly AuthenticationFault[]>> = {
  400: ['api_key_invalid', 'api_secret_missing', 'api_secret_wrong', 'key_revoked', 'merchant_inactive', 'key_expired'],
  404: ['api_key_missing'],
};
