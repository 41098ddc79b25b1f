import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2Stream } from 'node:http2';
import { setBackgroundTimer } from '../lib/deadline.js';
import type { CallbackResponse } from './responses.js';

/** So many times `bodyLimitBytes` of a body are read and dropped after its response. */
const drainFactor = 10;
/** How long to wait for the end of a body after its response, in milliseconds. */
const drainMs = 2_000;

interface Connection {
  /** Whether to close the connection after this response. */
  readonly closeAfter: boolean;
  /** Whether the rest of the request's body may still arrive. */
  readonly bodyMayArrive: boolean;
  readonly bodyLimitBytes: number;
}

/** Writes the one response of a delivery. */
export function respond(
  request: IncomingMessage,
  response: ServerResponse,
  { status, headers, body }: CallbackResponse,
  { closeAfter, bodyMayArrive, bodyLimitBytes }: Connection,
): void {
  // HTTP/2 has no such header: Node would warn and drop it.
  const connection = closeAfter && request.httpVersionMajor < 2 ? { Connection: 'close' } : undefined;
  // Copy the headers: other middleware that wraps `writeHead` may add to them.
  response.writeHead(status, { ...headers, ...connection });
  if (bodyMayArrive) {
    // Without this, Node sends the head of a response to HEAD only when the response ends.
    response.flushHeaders();
    response.write(body);
    endAfterBody(request, response, drainFactor * bodyLimitBytes);
  } else {
    response.end(body);
  }
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
