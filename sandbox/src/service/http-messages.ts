import type { IncomingMessage, ServerResponse } from 'node:http';

/** Far more than any creation needs; no limit is documented. */
export const bodyLimitBytes = 102_400;

export function isJson({ headers }: IncomingMessage): boolean {
  return /^application\/json\s*(;|$)/i.test(headers['content-type'] ?? '');
}

/** Resolves with `undefined` if the body is longer than the limit. Rejects if the client hangs up before its end. */
export async function readText(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    // Read to the end: a client that is cut off while writing may never see the response.
    if (length <= bodyLimitBytes) chunks.push(chunk);
  }
  return length > bodyLimitBytes ? undefined : Buffer.concat(chunks).toString();
}

interface ErrorReply {
  readonly status: number;
  readonly message: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Responds with the service's error body (service §2.3). */
export function sendError(response: ServerResponse, { status, message, headers }: ErrorReply): void {
  response.writeHead(status, { 'Content-Type': 'application/json', ...headers });
  response.end(JSON.stringify({ error: true, statusCode: status, message, data: null }));
}
