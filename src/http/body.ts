import type { IncomingMessage } from 'node:http';
import { consumed, findHeaderFault, parseBytes, parseText, ReceivedBytes, tooLarge } from './content.js';

/** The properties that an app's middleware may have added to a request. */
interface Parsed {
  body?: unknown;
  rawBody?: unknown;
}

const bodyIsGone =
  'Another middleware has read the body and left it neither in request.body nor in request.rawBody: ' +
  'mount the router before that middleware.';

/**
 * Reads the body, which the app may have left as a parsed value, bytes, text or an unread stream. Resolves with the
 * receiver's input, or with `undefined` if the client has disconnected before the stream was read.
 */
export function readBody(request: IncomingMessage & Parsed, limitBytes: number): unknown {
  const { body, rawBody } = request;
  const wasRead = request.readableDidRead || request.readableEnded;
  // Express 4's parsers set `body` to an empty object if they have not parsed anything.
  if (body !== undefined && body !== null && !isEmptyObject(body)) return toInput(body);
  if (!wasRead) return findHeaderFault(request, limitBytes) ?? readStream(request, limitBytes);
  if (typeof rawBody === 'string' || ArrayBuffer.isView(rawBody)) return toInput(rawBody);
  return isEmptyObject(body) ? body : consumed(bodyIsGone);
}

function toInput(given: unknown): unknown {
  if (typeof given === 'string') return parseText(given);
  if (ArrayBuffer.isView(given)) return parseBytes(Buffer.from(given.buffer, given.byteOffset, given.byteLength));
  return given;
}

function readStream(request: IncomingMessage, limitBytes: number): Promise<unknown> {
  return new Promise((resolve) => {
    const received = new ReceivedBytes(limitBytes);
    function keepChunk(chunk: Buffer | string): void {
      const bytes = typeof chunk === 'string' ? Buffer.from(chunk, request.readableEncoding ?? undefined) : chunk;
      if (received.add(bytes)) return;
      // `respond` drains part of the rest, so that the sender sees the response.
      request.off('data', keepChunk).off('end', parseBody).pause();
      resolve(tooLarge(limitBytes));
    }
    function parseBody(): void {
      resolve(parseBytes(received.bytes()));
    }
    request.on('data', keepChunk).on('end', parseBody);
    const aborted = (): void => {
      resolve(undefined);
    };
    request.on('error', aborted);
    request.on('close', aborted);
    // A stream that was destroyed before this call emits neither event again.
    if (request.destroyed) aborted();
    // Earlier middleware may have paused the stream.
    request.resume();
  });
}

function isEmptyObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0 && !ArrayBuffer.isView(value);
}
