import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2Stream } from 'node:http2';
import type { Answer } from './answers.js';

/** How much more of a body is read and dropped after its response, as a multiple of `bodyLimitBytes`. */
const drainedLimits = 10;
/** How long a body is waited for after its response, in milliseconds. */
const drainMs = 2_000;

interface Connection {
  /** Whether the connection is to end with this response. */
  readonly closes: boolean;
  /** Whether the request's body may still be arriving. */
  readonly unread: boolean;
  readonly bodyLimitBytes: number;
}

/** Writes the one response of a delivery. */
export function respond(
  request: IncomingMessage,
  response: ServerResponse,
  { status, headers, body }: Answer,
  { closes, unread, bodyLimitBytes }: Connection,
): void {
  // HTTP/2 has no such header: Node would warn and drop it.
  const connection = closes && request.httpVersionMajor < 2 ? { Connection: 'close' } : undefined;
  // A copy: other middleware that wraps `writeHead` may add to it.
  response.writeHead(status, { ...headers, ...connection });
  if (unread) {
    response.write(body);
    endAfterBody(request, response, drainedLimits * bodyLimitBytes);
  } else {
    response.end(body);
  }
}

/**
 * Ends the response, whose content has been written, when the request's body has ended. After `maxBytes` or `drainMs` more
 * of the body cuts the connection instead. Cut immediately, it would be reset, and a sender that is still writing could
 * lose the response.
 */
function endAfterBody(request: IncomingMessage, response: ServerResponse, maxBytes: number): void {
  let length = 0;
  const timer = setTimeout(cut, drainMs).unref();
  function drop(chunk: Buffer | string): void {
    length += chunk.length;
    if (length > maxBytes) cut();
  }
  function cut(): void {
    end();
    // HTTP/2 resets the stream only: the connection carries others.
    const { stream } = response as { stream?: Http2Stream };
    if (stream !== undefined) stream.close();
    else response.once('finish', () => request.destroy());
  }
  function end(): void {
    clearTimeout(timer);
    request.off('data', drop);
    response.end();
  }
  request.on('data', drop).once('end', end).once('error', end).once('close', end).resume();
}
