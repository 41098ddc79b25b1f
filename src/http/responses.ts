import type { Issue } from '../lib/standard-schema.js';
import { findRow, type OutcomeName, type TransferCallbackOutcome } from '../core/outcomes.js';
import { firstRetryMs } from '../core/service.js';

/** The response to a request that could not be read. Replaces the response to `invalid`. */
export interface Fault {
  readonly status: 400 | 405 | 413 | 415;
  readonly message: string;
}

/** A response without the headers that concern only the connection. */
export interface CallbackResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** The responses to outcomes that mean that a handler has succeeded, each made once. */
const acknowledgements: Partial<Record<OutcomeName, CallbackResponse>> = {};

/** Returns the response to an outcome. The body of a failure has the service's error shape (service §2.3). */
export function toResponse(outcome: TransferCallbackOutcome, fault?: Fault): CallbackResponse {
  const row = findRow(outcome);
  if (row.status === 200) {
    const { outcome: name } = outcome;
    return (acknowledgements[name] ??= toJsonResponse(200, { outcome: name }));
  }
  // With an error the app is at fault, not the sender.
  const isSenders = outcome.outcome === 'invalid' && outcome.error === undefined;
  const { status, message } = isSenders ? (fault ?? withPath(row, outcome.issues)) : row;
  const headers: Record<string, string> = {};
  // The first pause of the service: nothing better is documented (service §6.3).
  const retryAfterMs = outcome.outcome === 'retry_later' ? outcome.retryAfterMs : firstRetryMs;
  if (row.retryAfter) headers['Retry-After'] = String(Math.ceil(retryAfterMs / 1_000));
  if (status === 405) headers.Allow = 'POST';
  return toJsonResponse(status, { error: true, statusCode: status, message, data: null }, headers);
}

/** Adds the path of the first issue to the message. */
function withPath<R extends { readonly message: string }>(row: R, issues: readonly Issue[]): R {
  const path = issues[0]?.path.map(String).join('.');
  return path ? { ...row, message: `${row.message} See ${path}.` } : row;
}

function toJsonResponse(status: number, content: object, headers: CallbackResponse['headers'] = {}): CallbackResponse {
  const body = JSON.stringify(content);
  const length = String(Buffer.byteLength(body));
  return {
    status,
    headers: { 'Content-Type': 'application/json; charset=utf-8', 'Content-Length': length, ...headers },
    body,
  };
}
