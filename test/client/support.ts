import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { transferClient, type TransferClient, type TransferClientOptions } from 'transfer-callbacks/client';
import { serve } from '../support/serve.js';

export const credentials = { apiKey: 'key-1', apiSecret: 'a-secret-that-must-not-be-seen' };

export interface Received {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** What a service of a test answers: a status and a body, or whatever else it does with the response. */
export type Reply =
  readonly [status: number, body: unknown, headers?: Record<string, string>] | ((response: ServerResponse) => void);

export interface Service {
  readonly baseUrl: string;
  readonly received: Received[];
  readonly client: TransferClient;
  readonly close: () => Promise<void>;
}

/** A service that answers with `replies` in turn, the last one again and again, or with what `reply` makes of a request. */
export async function startService(
  replies: readonly Reply[] | ((received: Received) => Reply),
  options: Partial<TransferClientOptions> = {},
): Promise<Service> {
  const received: Received[] = [];

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method, url, headers } = request;
    const body = ((await request.setEncoding('utf8').toArray()) as string[]).join('');
    received.push({ method, url, headers, body });
    const last = { method, url, headers, body };
    const reply =
      typeof replies === 'function'
        ? replies(last)
        : (replies[Math.min(received.length, replies.length) - 1] ?? [500, '']);
    if (typeof reply === 'function') {
      reply(response);
      return;
    }
    const [status, content, extra = {}] = reply;
    response
      .writeHead(status, { 'Content-Type': 'application/json', ...extra })
      .end(typeof content === 'string' ? content : JSON.stringify(content));
  }

  const { url, close } = await serve((request, response) => void answer(request, response));
  return {
    baseUrl: url,
    received,
    client: transferClient({ baseUrl: url, ...credentials, ...options }),
    close,
  };
}

/** A refusal in the documented shape (service §2.3). */
export function refusal(statusCode: number, message: string): Reply {
  return [statusCode, { error: true, statusCode, message, data: null }];
}
