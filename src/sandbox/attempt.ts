import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { pause } from '../core/timing.js';

/** What became of one attempt: the status of a complete answer, or why there was none. */
export type AttemptAnswer = { status: number } | { error: string };

/** Any 2xx, and nothing else (service §4.3). */
export function isAcknowledgement(answer: AttemptAnswer): boolean {
  return 'status' in answer && answer.status >= 200 && answer.status < 300;
}

/** In total, the first included (service §6.3). */
export const attemptsPerCallback = 4;

export interface AttemptOptions {
  /** Default `application/json`, as documented (service §4.3). */
  contentType?: string | undefined;
  /**
   * How long to wait for the whole answer, in milliseconds of real time. Default 10 000. How long the service waits
   * is not documented.
   */
  timeoutMs?: number | undefined;
  /** Ends the attempt without an answer. */
  signal?: AbortSignal | undefined;
  /** Sends the body in small pieces with pauses, as over a bad line. */
  pieces?: boolean | undefined;
  /** Lets the merchant answer, and cuts the connection instead of reading what it said. */
  dropAnswer?: boolean | undefined;
}

const pieceBytes = 64;
const betweenPiecesMs = 5;

/**
 * Makes one delivery attempt on a connection of its own, as the service does (service §4.3): a POST with `body` as it
 * stands. Redirects are not followed. Never rejects.
 */
export function attemptCallback(
  url: string,
  body: string | Buffer,
  options: AttemptOptions = {},
): Promise<AttemptAnswer> {
  const { contentType = 'application/json', timeoutMs = 10_000, signal, pieces = false, dropAnswer = false } = options;
  const bytes = Buffer.from(body);

  return new Promise<AttemptAnswer>((resolve) => {
    const request = (url.startsWith('https:') ? httpsRequest : httpRequest)(url, {
      method: 'POST',
      headers: { 'Content-Type': contentType, 'Content-Length': bytes.length },
      // A kept connection could be closed by the merchant just when the next attempt is sent on it.
      agent: false,
    });
    function end(answer: AttemptAnswer): void {
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
      resolve(answer);
      request.destroy();
    }
    function abort(): void {
      end({ error: 'aborted' });
    }
    const timer = setTimeout(() => {
      end({ error: `no answer within ${timeoutMs} ms` });
    }, timeoutMs);

    // Only the first of these counts: a promise resolves once.
    request.on('error', (error: NodeJS.ErrnoException) => {
      // Where a name has several addresses, the error of them all has a code and no message.
      end({ error: error.message || String(error.code) });
    });
    let answering = false;
    request.on('close', () => {
      // An answer without a length ends with the connection, and only after this.
      if (!answering) end({ error: 'connection closed without an answer' });
    });
    request.on('response', (response) => {
      answering = true;
      if (dropAnswer) {
        end({ error: 'answer lost' });
        return;
      }
      response.resume();
      response.on('end', () => {
        end({ status: Number(response.statusCode) });
      });
      response.on('error', () => {
        end({ error: 'answer cut short' });
      });
    });

    signal?.addEventListener('abort', abort);
    if (signal?.aborted === true) abort();
    else if (pieces) void sendInPieces(bytes);
    else request.end(bytes);

    async function sendInPieces(rest: Buffer): Promise<void> {
      for (let from = 0; from < rest.length && !request.destroyed; from += pieceBytes) {
        request.write(rest.subarray(from, from + pieceBytes));
        await pause(betweenPiecesMs);
      }
      if (!request.destroyed) request.end();
    }
  }).catch((error: unknown) => ({ error: String(error) })); // Not a URL, or not of HTTP.
}
