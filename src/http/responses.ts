import type { Issue } from '../core/callback.js';
import type { OutcomeName, TransferCallbackOutcome } from '../core/outcome.js';

interface Row {
  readonly status: number;
  /** Text for people. It must never contain an error's text or a value of the callback. */
  readonly message: string;
  readonly retryAfter?: number;
}

/** In seconds: the service's first retry pause (service §6.3). Nothing better is documented. */
const retryAfter = 30;

/** The response to each outcome. Without a row for a new outcome the package does not compile. */
export const responses: Readonly<Record<OutcomeName, Row>> = {
  processed: { status: 200, message: 'The callback was handled.' },
  duplicate: { status: 200, message: 'The callback had been handled before.' },
  in_progress: { status: 409, message: 'Another delivery of this callback is being handled.', retryAfter },
  conflict: { status: 422, message: 'A callback with this id was handled with other facts.' },
  invalid: { status: 400, message: 'This is not a documented callback.' },
  unauthorized: { status: 401, message: 'The sender is not verified.' },
  unconfirmed: { status: 503, message: 'The callback could not be confirmed.', retryAfter },
  retry_later: { status: 503, message: 'The callback cannot be handled now.', retryAfter },
  handler_failed: { status: 500, message: 'The callback could not be handled.' },
  timed_out: { status: 503, message: 'The callback was not handled in time.', retryAfter },
  store_unavailable: { status: 503, message: 'The callback could not be recorded.', retryAfter },
  closing: { status: 503, message: 'The server is closing.', retryAfter },
};

/** The response to a request that could not be read. Replaces the row of `invalid`. */
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

const processed = toSuccess('processed');
const duplicate = toSuccess('duplicate');

/** Returns the response to an outcome. The body of a failure has the service's error shape (service §2.3). */
export function toResponse(outcome: TransferCallbackOutcome, fault?: Fault): CallbackResponse {
  if (outcome.outcome === 'processed') return processed;
  if (outcome.outcome === 'duplicate') return duplicate;
  const row = responses[outcome.outcome];
  const { status, message } = outcome.outcome === 'invalid' ? toInvalidRow(outcome, fault) : row;
  const headers: Record<string, string> = {};
  if (row.retryAfter !== undefined) headers['Retry-After'] = String(row.retryAfter);
  if (outcome.outcome === 'retry_later') headers['Retry-After'] = String(Math.ceil(outcome.retryAfterMs / 1_000));
  if (status === 405) headers.Allow = 'POST';
  return toJsonResponse(status, { error: true, statusCode: status, message, data: null }, headers);
}

function toSuccess(outcome: 'processed' | 'duplicate'): CallbackResponse {
  return toJsonResponse(responses[outcome].status, { outcome });
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

function toInvalidRow({ issues, error }: { issues: readonly Issue[]; error?: unknown }, fault?: Fault): Row {
  // The app is at fault, not the sender: its middleware has consumed the body, or its schema threw.
  if (error !== undefined) return { status: 500, message: 'The callback could not be read.' };
  if (fault !== undefined) return fault;
  const { status, message } = responses.invalid;
  const path = issues[0]?.path.map(String).join('.');
  return { status, message: path ? `${message.slice(0, -1)}: see ${path}.` : message };
}
