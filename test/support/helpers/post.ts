import { request as httpRequest, type Agent, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { patienceMs } from './patience.js';

export interface PostResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface Sent {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** Sent one after the other before the body, without Content-Length. */
  readonly chunks?: readonly string[];
  /** Keeps the connection. Without it each request has its own. */
  readonly agent?: Agent;
}

/** Sends one request as JSON, unless `headers` says otherwise; a header set to `undefined` is left out. */
export async function post(
  url: string,
  body: unknown,
  { method = 'POST', headers = {}, chunks, agent }: Sent = {},
): Promise<PostResponse> {
  const bytes = typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body);
  const request = httpRequest(url, { method, agent: agent ?? false });
  const all: Sent['headers'] = {
    'Content-Type': 'application/json',
    'Content-Length': chunks === undefined ? String(Buffer.byteLength(bytes)) : undefined,
    ...headers,
  };
  for (const [name, value] of Object.entries(all)) {
    if (value !== undefined) request.setHeader(name, value);
  }
  const responded = new Promise<IncomingMessage>((resolve, reject) => {
    request.once('response', resolve).once('error', reject);
  });
  request.setTimeout(patienceMs, () => request.destroy(new Error(`No response within ${patienceMs} ms.`)));
  for (const chunk of chunks ?? []) await new Promise((resolve) => request.write(chunk, resolve));
  request.end(bytes);
  const response = await responded;
  const received = (await response.setEncoding('utf8').toArray()) as string[];
  return { status: response.statusCode ?? 0, headers: response.headers, body: received.join('') };
}

/** An error body in the service's shape. */
export function errorBody(statusCode: number, message: string): string {
  return JSON.stringify({ error: true, statusCode, message, data: null });
}
