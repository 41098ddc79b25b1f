import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2Stream } from 'node:http2';
import { setBackgroundTimer } from '../lib/deadline.js';
import type { Issue } from '../lib/standard-schema.js';
import { findRow, type OutcomeName, type TransferCallbackOutcome } from '../core/outcomes.js';
import { firstRetryMs } from '../core/service.js';
import type { RequestFault } from './body.js';

/** A response without the headers that concern only the connection. */
export interface CallbackResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** The responses to outcomes that mean that a handler has succeeded, each made once. */
const acknowledgements: Partial<Record<OutcomeName, CallbackResponse>> = {};

/**
 * Returns the response to an outcome. A `fault` is responded to in place of `invalid`. The body of a failure has the
 * service's error shape (service §2.3).
 */
export function toResponse(
  outcome: TransferCallbackOutcome,
  fault?: Pick<RequestFault, 'status' | 'message'>,
): CallbackResponse {
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

/** After the response this many times `bodyLimitBytes` of the request's body are read and dropped. */
const drainFactor = 10;
/** How long to wait for the end of a body after its response, in milliseconds. */
const drainMs = 2_000;

/** Writes the one response of a delivery. Closes the connection if the receiver closes, or the body was too long. */
export function respond(
  request: IncomingMessage,
  response: ServerResponse,
  { status, headers, body }: CallbackResponse,
  { isClosing, bodyLimitBytes }: { readonly isClosing: boolean; readonly bodyLimitBytes: number },
): void {
  // HTTP/2 has no such header: Node would warn and drop it.
  const closes = (isClosing || status === 413) && request.httpVersionMajor < 2;
  // Copy the headers: other middleware that wraps `writeHead` may add to them.
  response.writeHead(status, { ...headers, ...(closes && { Connection: 'close' }) });
  if (request.readableEnded) {
    response.end(body);
    return;
  }
  // Without this, Node sends the head of a response to HEAD only when the response ends.
  response.flushHeaders();
  response.write(body);
  endAfterBody(request, response, drainFactor * bodyLimitBytes);
}

/**
 * Ends the response, whose content has been written, when the request's body has ended. Cuts the connection after
 * `maxBytes` or `drainMs` more of the body. Cutting it immediately would reset it, and a sender that is still writing
 * could lose the response.
 */
function endAfterBody(request: IncomingMessage, response: ServerResponse, maxBytes: number): void {
  let length = 0;
  const timer = setBackgroundTimer(cut, drainMs);
  function drop(chunk: Buffer | string): void {
    length += chunk.length;
    if (length > maxBytes) cut();
  }
  function cut(): void {
    end();
    // In HTTP/2, reset only the stream: the connection carries other requests.
    const { stream } = response as { stream?: Http2Stream };
    if (stream !== undefined) stream.close();
    else response.once('finish', () => request.destroy());
  }
  function end(): void {
    clearTimeout(timer);
    request.off('data', drop);
    response.end();
  }
  request.on('data', drop).once('end', end).once('error', end).resume();
}
