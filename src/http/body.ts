import type { IncomingMessage } from 'node:http';
import { isUnreadable, Unreadable } from '../core/validate.js';
import { isUtf8 } from 'node:buffer';
import { TransferCallbackError } from '../lib/errors.js';
import { readHeader, type SenderRequest } from './request.js';

/** A request that the sender must send differently, with the response to it. */
export class RequestFault extends Unreadable {
  readonly status: 400 | 405 | 413 | 415;
  readonly message: string;

  constructor(status: RequestFault['status'], message: string) {
    super(message);
    this.status = status;
    this.message = message;
  }
}

/** What was read of a request. */
export interface ReadBody {
  /** The input of the receiver. */
  readonly input: unknown;
  /** The body as it was received: `gone` if the app has parsed it and left no bytes, `undefined` if it was not read. */
  readonly bytes?: Uint8Array | 'gone' | undefined;
}

/** Returns what the headers say against the body, before it is read. */
export function findHeaderFault(request: SenderRequest, limitBytes: number): RequestFault | undefined {
  const type = readHeader(request, 'content-type') ?? '';
  const encoding = readHeader(request, 'content-encoding') ?? 'identity';
  const length = Number(readHeader(request, 'content-length') ?? 0);
  const fault = findTypeFault(type);
  if (fault !== undefined) return fault;
  if (encoding.toLowerCase() !== 'identity') return new RequestFault(415, 'The body must not be compressed.');
  return length > limitBytes ? tooLarge(limitBytes) : undefined;
}

function findTypeFault(contentType: string): RequestFault | undefined {
  // The service sends exactly this. Splitting the header cost as much as parsing the body.
  if (contentType === 'application/json') return undefined;
  // A semicolon inside a quoted value does not end the parameter.
  const header = contentType.replace(/"(?:\\.|[^"\\])*"/g, (text) => text.replaceAll(';', ' '));
  const [type, ...parameters] = header.split(';').map((part) => part.trim().toLowerCase());
  if (type !== 'application/json') return new RequestFault(415, 'Content-Type must be application/json.');
  const charset = parameters.find((parameter) => parameter.startsWith('charset='));
  const isUtf8Charset = charset === undefined || /="?utf-?8"?$/.test(charset);
  return isUtf8Charset ? undefined : new RequestFault(415, 'The charset must be UTF-8.');
}

/** Returns the bytes, and the value of the JSON in them. */
function parseBytes(bytes: Buffer): ReadBody {
  return {
    input: isUtf8(bytes) ? parseText(bytes.toString()) : new RequestFault(400, 'The body is not UTF-8.'),
    bytes,
  };
}

/** Returns the value of this JSON. */
function parseText(text: string): unknown {
  try {
    // `JSON.parse` throws on a byte order mark. Express's parsers drop it too.
    return JSON.parse(text.startsWith('\ufeff') ? text.slice(1) : text) as unknown;
  } catch {
    return new RequestFault(400, 'The body is not JSON.');
  }
}

/**
 * The bytes of a body that arrives in chunks, in one buffer: a sender chooses the size of its chunks, and a list of
 * buffers of one byte takes hundreds of times their length.
 */
export class ReceivedBytes {
  readonly #limitBytes: number;
  #buffer = Buffer.alloc(0);
  #length = 0;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  /** Keeps a chunk. Returns the fault of a body that is too long with it. */
  add(chunk: Uint8Array): RequestFault | undefined {
    const length = this.#length + chunk.length;
    if (length > this.#limitBytes) return tooLarge(this.#limitBytes);
    if (length > this.#buffer.length) {
      // Twice what is needed: otherwise each small chunk would copy all before it.
      this.#buffer = Buffer.concat([this.#buffer], Math.min(2 * length, this.#limitBytes));
    }
    this.#buffer.set(chunk, this.#length);
    this.#length = length;
    return undefined;
  }

  /** Returns the body, when all its chunks have been added. */
  end(): ReadBody {
    return parseBytes(this.#buffer.subarray(0, this.#length));
  }
}

function tooLarge(limitBytes: number): RequestFault {
  return new RequestFault(413, `The body must not be longer than ${limitBytes} bytes.`);
}

/** The app's fault: the body cannot be read any more. `message` says what the app must change. */
export function consumed(message: string, options?: ErrorOptions): Unreadable {
  return new Unreadable(message, new TransferCallbackError('BODY_CONSUMED', message, options));
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
  request: IncomingMessage & { body?: unknown; rawBody?: unknown },
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
