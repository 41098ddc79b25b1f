import type { IncomingMessage } from 'node:http';
import { isUnreadable } from '../core/validate.js';
import { consumed, findHeaderFault, parseBytes, parseText, ReceivedBytes, type ReadBody } from './content.js';

/** The properties that an app's middleware may have added to a request. */
interface Parsed {
  body?: unknown;
  rawBody?: unknown;
}

const bodyIsGone =
  'Another middleware, or a hook that listens to `data`, has read the body and left it neither in request.body nor in ' +
  'request.rawBody: mount the router before that middleware, or remove the hook.';

/**
 * Reads the body. Resolves with `undefined` if the client has disconnected before the stream was read. The first line
 * that fits:
 *
 * | `body`                      | stream | `rawBody`    | the input, and the bytes for a verifier                |
 * | --------------------------- | ------ | ------------ | ------------------------------------------------------ |
 * | bytes                       |        |              | the JSON in them                                       |
 * | text, or a value            |        | bytes        | the JSON in `rawBody`; if it has none, as without it    |
 * | text, or a value            |        |              | the JSON in the text, or the value; the bytes are gone |
 * | none, or an empty object    | unread |              | the JSON in the stream                                 |
 * | none, or an empty object    | read   | bytes        | the JSON in them                                       |
 * | none, or an empty object    | read   | text         | the JSON in it; the bytes are gone                     |
 * | an empty object             | read   |              | the object; the bytes are gone                         |
 * | none                        | read   |              | the app is at fault                                    |
 */
export function readBody(
  request: IncomingMessage & Parsed,
  limitBytes: number,
): ReadBody | Promise<ReadBody | undefined> {
  const { body, rawBody } = request;
  const wasRead = request.readableDidRead || request.readableEnded;
  // Express 4's parsers set `body` to an empty object if they have not parsed anything.
  if (body !== undefined && body !== null && !isEmptyObject(body)) return toRead(body, rawBody);
  if (!wasRead) {
    const fault = findHeaderFault(request, limitBytes);
    return fault === undefined ? readStream(request, new ReceivedBytes(limitBytes)) : { input: fault };
  }
  if (typeof rawBody === 'string' || ArrayBuffer.isView(rawBody)) return toRead(rawBody, undefined);
  return isEmptyObject(body) ? { input: body, bytes: 'gone' } : { input: consumed(bodyIsGone) };
}

function toRead(given: unknown, rawBody: unknown): ReadBody {
  if (ArrayBuffer.isView(given)) return parseBytes(toBuffer(given));
  // What was signed is handled: a replay of the same bytes as a form or in UTF-7 makes a parser leave another value.
  const received = ArrayBuffer.isView(rawBody) ? parseBytes(toBuffer(rawBody)) : undefined;
  if (received !== undefined && !isUnreadable(received.input)) return received;
  // A Proxy or a getter of an app's middleware may throw when it is read: then the app is at fault.
  Reflect.get(Object(given) as object, 'data');
  // A string is not what was received: its decoder may have changed bytes.
  return { input: typeof given === 'string' ? parseText(given) : given, bytes: received?.bytes ?? 'gone' };
}

function toBuffer({ buffer, byteOffset, byteLength }: ArrayBufferView): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}

function readStream(request: IncomingMessage, received: ReceivedBytes): Promise<ReadBody | undefined> {
  return new Promise((resolve) => {
    function keepChunk(chunk: Buffer | string): void {
      const bytes = typeof chunk === 'string' ? Buffer.from(chunk, request.readableEncoding ?? undefined) : chunk;
      const fault = received.add(bytes);
      if (fault === undefined) return;
      // `respond` drains part of the rest, so that the sender sees the response.
      request.off('data', keepChunk).off('end', end).pause();
      resolve({ input: fault });
    }
    function end(): void {
      resolve(received.end());
    }
    request.on('data', keepChunk).on('end', end);
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
