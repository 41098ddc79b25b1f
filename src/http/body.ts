import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { UnreadableCallback } from '../core/callback.js';
import { TransferCallbackError } from '../core/errors.js';
import type { Fault } from './responses.js';

/** A request that the sender must send differently, with the response to it. */
export class RefusedRequest extends UnreadableCallback implements Fault {
  readonly status: Fault['status'];
  readonly message: string;

  constructor(status: Fault['status'], message: string) {
    super(message);
    this.status = status;
    this.message = message;
  }
}

/** The properties that an app's middleware may have added to a request. */
interface Parsed {
  body?: unknown;
  rawBody?: unknown;
}

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
  if (typeof rawBody === 'string' || rawBody instanceof Uint8Array) return toInput(rawBody);
  return isEmptyObject(body) ? body : consumed();
}

function toInput(given: unknown): unknown {
  if (typeof given === 'string') return parse(given);
  if (given instanceof Uint8Array) return parseBytes(Buffer.from(given.buffer, given.byteOffset, given.byteLength));
  return given;
}

function findHeaderFault({ headers }: IncomingMessage, limitBytes: number): RefusedRequest | undefined {
  const fault = findTypeFault(headers['content-type'] ?? '');
  if (fault !== undefined) return fault;
  const encoding = headers['content-encoding'] ?? 'identity';
  if (encoding.toLowerCase() !== 'identity') return new RefusedRequest(415, 'The body must not be compressed.');
  return Number(headers['content-length'] ?? 0) > limitBytes ? tooLarge(limitBytes) : undefined;
}

function findTypeFault(contentType: string): RefusedRequest | undefined {
  // The service sends exactly this. Splitting the header cost as much as parsing the body.
  // Stryker disable next-line ConditionalExpression: Equal: only faster.
  if (contentType === 'application/json') return undefined;
  // A semicolon inside a quoted value does not end the parameter.
  // Stryker disable next-line StringLiteral: Equal: no value with a semicolon is read.
  const header = contentType.replace(/"(?:\\.|[^"\\])*"/g, (text) => text.replaceAll(';', ' '));
  const [type, ...parameters] = header.split(';').map((part) => part.trim().toLowerCase());
  if (type !== 'application/json') return new RefusedRequest(415, 'Content-Type must be application/json.');
  const charset = parameters.find((parameter) => parameter.startsWith('charset='));
  const isUtf8Charset = charset === undefined || /="?utf-?8"?$/.test(charset);
  return isUtf8Charset ? undefined : new RefusedRequest(415, 'The charset must be UTF-8.');
}

function readStream(request: IncomingMessage, limitBytes: number): Promise<unknown> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let length = 0;
    request.on('data', function keepChunk(chunk: Buffer | string) {
      // Stryker disable next-line ConditionalExpression: Equal: bytes would be copied.
      const bytes = typeof chunk === 'string' ? Buffer.from(chunk, request.readableEncoding ?? undefined) : chunk;
      length += bytes.length;
      if (length <= limitBytes) {
        chunks.push(bytes);
      } else {
        // `respond` drains part of the rest, so that the sender sees the response.
        request.off('data', keepChunk).pause();
        resolve(tooLarge(limitBytes));
      }
    });
    request.on('end', () => {
      // Stryker disable next-line ConditionalExpression: Equal: what is left of a refused body would be parsed for nothing.
      if (length > limitBytes) return;
      resolve(parseBytes(Buffer.concat(chunks)));
    });
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

function parseBytes(bytes: Buffer): unknown {
  return isUtf8(bytes) ? parse(bytes.toString()) : new RefusedRequest(400, 'The body is not UTF-8.');
}

function parse(text: string): unknown {
  try {
    // `JSON.parse` throws on a byte order mark. Express's parsers drop it too.
    return JSON.parse(text.startsWith('\ufeff') ? text.slice(1) : text) as unknown;
  } catch {
    return new RefusedRequest(400, 'The body is not JSON.');
  }
}

function tooLarge(limitBytes: number): RefusedRequest {
  return new RefusedRequest(413, `The body must not be longer than ${limitBytes} bytes.`);
}

function consumed(): UnreadableCallback {
  const message =
    'Another middleware has read the body and left it neither in request.body nor in request.rawBody: ' +
    'mount the router before that middleware.';
  return new UnreadableCallback(message, new TransferCallbackError('BODY_CONSUMED', message));
}

function isEmptyObject(value: unknown): boolean {
  return (
    typeof value === 'object' && value !== null && Object.keys(value).length === 0 && !(value instanceof Uint8Array)
  );
}
