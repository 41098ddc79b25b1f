import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Result } from './transfers.js';

/** What a merchant authenticates with (service §5). */
export interface SandboxKey {
  readonly apiKey: string;
  readonly apiSecret: string;
}

/** One key that works, and one for each way in which a key that is known does not (service §5.4). */
export interface SandboxKeys {
  readonly valid: SandboxKey;
  readonly expired: SandboxKey;
  readonly revoked: SandboxKey;
  readonly merchantInactive: SandboxKey;
}

/** What the listener needs of `SandboxTransfers`. */
export interface Transfers {
  create(request: unknown): Promise<Result>;
  query(idOrExternalId: string): Result;
}

/** Far more than any creation needs; no limit is documented. */
const bodyLimitBytes = 102_400;

/**
 * Responds as the service does (service §4.1, §4.2, §5.4). Guesses, since the documentation shows neither: success as
 * `{ error: false, statusCode, message, data }`, and every status but those of the authentication.
 */
export function serviceListener(keys: SandboxKeys, transfers: Transfers): RequestListener {
  return function listenAsTheService(request, response) {
    resultOf(keys, transfers, request).then(
      (result) => {
        respond(response, result);
      },
      (error: unknown) => {
        // A function for `callbackUrl` threw; or the merchant has hung up, and reads no response.
        respond(response, { status: 500, message: String(error) });
      },
    );
  };
}

async function resultOf(keys: SandboxKeys, transfers: Transfers, request: IncomingMessage): Promise<Result> {
  const [path = ''] = String(request.url).split('?');
  const isCreation = request.method === 'POST' && path === '/transactions/transfer';
  const asked = request.method === 'GET' ? /^\/transactions\/([^/]+)$/.exec(path)?.[1] : undefined;
  if (!isCreation && asked === undefined) {
    return { status: 404, message: `No ${String(request.method)} ${path} here` };
  }
  const refusal = refusalOf(keys, request);
  if (refusal !== undefined) return refusal;
  if (asked !== undefined) {
    const name = decoded(asked);
    return name === undefined ? { status: 400, message: 'The path is not well-formed' } : transfers.query(name);
  }
  if (!/^application\/json\s*(;|$)/i.test(request.headers['content-type'] ?? '')) {
    return { status: 400, message: 'Content-Type is not application/json' };
  }
  const text = await textOf(request);
  if (text === undefined) return { status: 400, message: `The body is longer than ${bodyLimitBytes} bytes` };
  const body = parsed(text);
  return body === undefined ? { status: 400, message: 'The body is not JSON' } : transfers.create(body);
}

/** The table of service §5.4, in its order. The messages are not documented. */
function refusalOf(keys: SandboxKeys, { headers }: IncomingMessage): Result | undefined {
  const { 'x-api-key': apiKey, 'x-api-secret': apiSecret } = headers;
  if (apiKey === undefined) return { status: 404, message: 'x-api-key is missing' };
  const known = Object.values(keys) as SandboxKey[];
  const key = known.find((each) => each.apiKey === apiKey);
  if (key === undefined) return { status: 400, message: 'x-api-key is invalid' };
  if (apiSecret === undefined) return { status: 400, message: 'x-api-secret is missing' };
  if (apiSecret !== key.apiSecret) return { status: 400, message: 'x-api-secret does not match the key' };
  if (key === keys.revoked) return { status: 400, message: 'The key is revoked' };
  if (key === keys.merchantInactive) return { status: 400, message: 'The merchant is inactive' };
  if (key === keys.expired) return { status: 400, message: 'The key has expired' };
  return undefined;
}

/** Resolves with `undefined` if the body is too long. Rejects if the merchant hangs up before its end. */
async function textOf(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    // Read to the end: a merchant that is cut off while writing may never see the response.
    if (length <= bodyLimitBytes) chunks.push(chunk);
  }
  return length > bodyLimitBytes ? undefined : Buffer.concat(chunks).toString();
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function decoded(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

function respond(response: ServerResponse, result: Result): void {
  const { status: statusCode } = result;
  const body =
    'data' in result
      ? {
          error: false,
          statusCode,
          message: statusCode === 201 ? 'Transfer created' : 'Transaction',
          data: result.data,
        }
      : { error: true, statusCode, message: result.message, data: null };
  response.writeHead(statusCode, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
}
