import { isUint8Array } from 'node:util/types';
import { consumed, findHeaderFault, ReceivedBytes, type ReadBody } from './body.js';

const bodyIsGone =
  'The body of the request has been read before, or is no stream of bytes: ' +
  'give the handler the web request that your host made, before anything reads it.';

/**
 * Reads the body of a web request. Resolves with `undefined` if the client has disconnected before the stream was read.
 */
export function readWebBody(request: Request, limitBytes: number): ReadBody | Promise<ReadBody | undefined> {
  const { body } = request;
  if (request.bodyUsed || !isUnread(body)) return { input: consumed(bodyIsGone) };
  const fault = findHeaderFault(request, limitBytes);
  if (fault !== undefined) return { input: fault };
  const received = new ReceivedBytes(limitBytes);
  return body === null ? received.end() : readChunks(body.getReader(), received);
}

/** An app in JavaScript can pass a request of another kind, whose body is not a stream of the web. */
function isUnread(body: Partial<ReadableStream> | null | undefined): boolean {
  return body === null || (typeof body?.getReader === 'function' && body.locked === false);
}

async function readChunks(
  reader: ReadableStreamDefaultReader<unknown>,
  received: ReceivedBytes,
): Promise<ReadBody | undefined> {
  try {
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
      // The length of a string is not its number of bytes.
      if (!isUint8Array(chunk.value)) return stop(reader, consumed(bodyIsGone));
      const fault = received.add(chunk.value);
      if (fault !== undefined) return stop(reader, fault);
    }
  } catch {
    return undefined;
  }
  return received.end();
}

/** Tells the host that the rest is not wanted. */
function stop(reader: ReadableStreamDefaultReader<unknown>, input: unknown): ReadBody {
  // Not awaited: a source may never finish cancelling. An unhandled rejection would end the process.
  reader.cancel().catch(() => undefined);
  return { input };
}
