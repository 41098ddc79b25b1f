/** What went wrong with a call, for code: compare this and not the class, which may be loaded more than once. */
export type TransferClientErrorCode =
  /** The id cannot stand in the path of a query. Nothing was sent. */
  | 'INVALID_ID'
  /** The service said no, for example with 400 or 404. It has not acted. */
  | 'REFUSED'
  /** A query could not be answered: no connection, no answer in time, or a status that is neither a success nor a refusal. */
  | 'UNAVAILABLE'
  /** A creation was sent, and nobody knows whether the service has acted on it. Query the transfer before anything else. */
  | 'OUTCOME_UNKNOWN'
  /** The service has answered with 2xx, but not with what was looked for. A creation was accepted all the same. */
  | 'UNREADABLE_ANSWER'
  /** The transaction that was read is not final yet. */
  | 'NOT_FINAL';

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

interface Details extends ErrorOptions {
  status?: number | undefined;
  body?: ServiceErrorBody | undefined;
  retryAfterMs?: number | undefined;
}

/** Every error of a call to the service. Holds nothing of the request: no key, no secret. */
export class TransferClientError extends Error {
  readonly code: TransferClientErrorCode;
  /** The HTTP status of the answer; `undefined` when there was none. */
  readonly status: number | undefined;
  /** What the service said, where that has its documented shape. */
  readonly body: ServiceErrorBody | undefined;
  /** Which faults of authentication answer with this status (service §5.4). The service may mean something else by it. */
  readonly authenticationFaults: readonly AuthenticationFault[];
  /** What the answer's Retry-After asked for, in milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(code: TransferClientErrorCode, message: string, { status, body, retryAfterMs, ...rest }: Details = {}) {
    super(message, rest);
    this.name = 'TransferClientError';
    this.code = code;
    this.status = status;
    this.body = body;
    this.authenticationFaults = (status === undefined ? undefined : faults[status]) ?? [];
    this.retryAfterMs = retryAfterMs;
  }
}

const faults: Readonly<Record<number, readonly AuthenticationFault[]>> = {
  400: ['api_key_invalid', 'api_secret_missing', 'api_secret_wrong', 'key_revoked', 'merchant_inactive', 'key_expired'],
  404: ['api_key_missing'],
};
