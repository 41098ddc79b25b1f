import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';

/** What came of reading a body: a JSON value, the answer for one that cannot be read, or nobody left to answer. */
export type Body =
  | { state: 'read'; value: unknown }
  | { state: 'unreadable'; status: 400 | 413 | 415; message: string }
  | { state: 'aborted' };

/** Reads the body in whatever shape the app has left it: parsed, as bytes, as text, or as an unread stream. */
export async function readBody(request: IncomingMessage & { body?: unknown }, limitBytes: number): Promise<Body> {
  const { body } = request;
  const wasRead = request.readableDidRead || request.readableEnded;
  // Express 4's parsers leave an empty object where they have not parsed anything.
  if (body !== undefined && body !== null && (wasRead || !isEmptyObject(body))) return parsedBody(body);
  if (!wasRead) return headerFault(request, limitBytes) ?? readStream(request, limitBytes);
  return unreadable(
    400,
    'The body was read before the router and not left in request.body: mount the router before what reads it.',
  );
}

function parsedBody(body: unknown): Body {
  if (typeof body === 'string') return parse(body);
  if (body instanceof Uint8Array) return parseBytes(Buffer.from(body.buffer, body.byteOffset, body.byteLength));
  return { state: 'read', value: body };
}

function headerFault({ headers }: IncomingMessage, limitBytes: number): Body | undefined {
  const [type, ...parameters] = (headers['content-type'] ?? '').toLowerCase().split(';');
  if (type?.trim() !== 'application/json') return unreadable(415, 'Content-Type must be application/json.');
  const charset = parameters.map((parameter) => parameter.trim()).find((parameter) => parameter.startsWith('charset='));
  if (charset !== undefined && !/^charset="?utf-?8"?$/.test(charset))
    return unreadable(415, 'The charset must be UTF-8.');
  const encoding = headers['content-encoding'];
  if (encoding !== undefined && encoding !== 'identity') return unreadable(415, 'The body must not be compressed.');
  return Number(headers['content-length'] ?? 0) > limitBytes ? tooLarge(limitBytes) : undefined;
}

function readStream(request: IncomingMessage, limitBytes: number): Promise<Body> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let length = 0;
    request.on('data', (chunk: Buffer | string) => {
      const bytes = typeof chunk === 'string' ? Buffer.from(chunk, request.readableEncoding ?? undefined) : chunk;
      length += bytes.length;
      if (length <= limitBytes) chunks.push(bytes);
      // The rest is read and dropped: closing on a sender that is still writing could cost it the answer.
      else resolve(tooLarge(limitBytes));
    });
    request.on('end', () => {
      if (length <= limitBytes) resolve(parseBytes(Buffer.concat(chunks, length)));
    });
    const aborted = (): void => {
      resolve({ state: 'aborted' });
    };
    request.on('error', aborted);
    request.on('close', aborted);
    if (request.destroyed) aborted(); // Before we came: neither event is told again.
    // A stream that somebody has paused would keep us waiting for ever.
    request.resume();
  });
}

function parseBytes(bytes: Buffer): Body {
  return isUtf8(bytes) ? parse(bytes.toString()) : unreadable(400, 'The body is not UTF-8.');
}

function parse(text: string): Body {
  try {
    return { state: 'read', value: JSON.parse(text) };
  } catch {
    return unreadable(400, 'The body is not JSON.');
  }
}

function tooLarge(limitBytes: number): Body {
  return unreadable(413, `The body must not be longer than ${limitBytes} bytes.`);
}

function unreadable(status: 400 | 413 | 415, message: string): Body {
  return { state: 'unreadable', status, message };
}

function isEmptyObject(value: unknown): boolean {
  return (
    typeof value === 'object' && value !== null && Object.keys(value).length === 0 && !(value instanceof Uint8Array)
  );
}
