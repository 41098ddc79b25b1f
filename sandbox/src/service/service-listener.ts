import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { parseJson } from '../../../src/lib/text.js';
import type { PayoutService, Result } from './payout-service.js';
import { bodyLimitBytes, isJson, readText, sendError } from './http-messages.js';

/** One valid key, and one for each reason for which the service refuses a key that it knows (service §5.4). */
export type SandboxKeys = Readonly<
  Record<'valid' | 'expired' | 'revoked' | 'merchantInactive', { readonly apiKey: string; readonly apiSecret: string }>
>;

/** What the service needs of the sandbox. */
export interface ServiceParts {
  readonly keys: SandboxKeys;
  readonly transfers: PayoutService;
  /** Called with the reason for which a key is refused. */
  readonly onKeyRefused: (reason: string) => void;
}

/**
 * Returns a listener that responds as the service does (service §4.1, §4.2, §5.4). Two things are guesses, because the
 * documentation does not show them: the body of a success, `{ error: false, statusCode, message, data }`, and every
 * status except the statuses of authentication.
 */
export function serviceListener(parts: ServiceParts): RequestListener {
  return function listenAsTheService(request, response) {
    findResult(parts, request).then(
      (result) => {
        respond(response, result);
      },
      (error: unknown) => {
        // A function for `callbackUrl` threw, or the merchant has closed the connection and reads no response.
        respond(response, { status: 500, message: String(error) });
      },
    );
  };
}

async function findResult({ keys, transfers, onKeyRefused }: ServiceParts, request: IncomingMessage): Promise<Result> {
  const [path = ''] = String(request.url).split('?');
  const isCreation = request.method === 'POST' && path === '/transactions/transfer';
  const asked = request.method === 'GET' ? /^\/transactions\/([^/]+)$/.exec(path)?.[1] : undefined;
  if (!isCreation && asked === undefined) {
    return { status: 404, message: `No ${String(request.method)} ${path} here` };
  }
  const refusal = findRefusal(keys, request);
  if (refusal !== undefined) {
    onKeyRefused(refusal.message);
    return refusal;
  }
  if (asked !== undefined) {
    const name = decodeSegment(asked);
    return name === undefined ? { status: 400, message: 'The path is not well-formed' } : transfers.query(name);
  }
  if (!isJson(request)) return { status: 400, message: 'Content-Type is not application/json' };
  const text = await readText(request);
  if (text === undefined) return { status: 400, message: `The body is longer than ${bodyLimitBytes} bytes` };
  const body = parseJson(text);
  return body === undefined ? { status: 400, message: 'The body is not JSON' } : transfers.create(body);
}

/** Checks the key in the order of service §5.4, and returns the first refusal. The messages are not documented. */
function findRefusal(
  keys: SandboxKeys,
  { headers }: IncomingMessage,
): Extract<Result, { message: string }> | undefined {
  const { 'x-api-key': apiKey, 'x-api-secret': apiSecret } = headers;
  if (apiKey === undefined) return { status: 404, message: 'x-api-key is missing' };
  const key = Object.values(keys).find((each) => each.apiKey === apiKey);
  if (key === undefined) return { status: 400, message: 'x-api-key is invalid' };
  if (apiSecret === undefined) return { status: 400, message: 'x-api-secret is missing' };
  if (apiSecret !== key.apiSecret) return { status: 400, message: 'x-api-secret does not match the key' };
  if (key === keys.revoked) return { status: 400, message: 'The key is revoked' };
  if (key === keys.merchantInactive) return { status: 400, message: 'The merchant is inactive' };
  if (key === keys.expired) return { status: 400, message: 'The key has expired' };
  return undefined;
}

function decodeSegment(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

function respond(response: ServerResponse, result: Result): void {
  if ('message' in result) {
    sendError(response, result);
    return;
  }
  const { status } = result;
  const message = status === 201 ? 'Transfer created' : 'Transaction';
  response.writeHead(status, { 'Content-Type': 'application/json' });
  response.end(JSON.stringify({ error: false, statusCode: status, message, data: result.data }));
}
