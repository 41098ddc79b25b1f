import type { CallbackOf, EventShape, TransferCallback } from '../core/callback.js';
import type { TransferCallbackReceiver } from '../core/receiver.js';
import { hasMethods } from '../lib/checks.js';
import { resolveHttpOptions, type TransferCallbackOptions } from './options.js';
import { requestReceiver } from './request-receiver.js';
import { readWebBody } from './web-body.js';

/** A web request. Set `ip` to the address of the sender if you use `ipAllowList`. */
export type WebRequest = Request & { readonly ip?: string | undefined };

/**
 * What a host may pass beside the request. Any other object is ignored: hosts pass parameters, an address or a server.
 */
interface HostContext {
  /** Keeps the process until the promise resolves. It is called as a method of this object. */
  waitUntil?(work: Promise<void>): unknown;
}

/**
 * A handler for hosts that give a web `Request` and want a `Response`. It never rejects. With a `waitUntil` the host
 * keeps the process for a late handler and for `afterCommit`.
 *
 * @example
 * const withAddress = (handle: TransferCallbackHandler, ip: string) => (request: Request) =>
 *   handle(Object.assign(request, { ip }));
 */
export type TransferCallbackHandler = (request: WebRequest, host?: HostContext | object) => Promise<Response>;

/**
 * Makes a handler that treats every web request as a delivery, for Next.js, Hono, Bun, Deno and other hosts of the
 * Fetch API. It responds as the router does, and its property `receiver` is the receiver. Throws INVALID_ARGUMENT.
 *
 * @example
 * export const POST = transferCallbackHandler({ store, onSuccess, onFailed }); // a route of Next.js
 * const handle = transferCallbackHandler({ receiver });
 * const fetch = (request: Request, _env: object, context: { waitUntil(work: Promise<void>): void }) =>
 *   handle(request, context); // a Worker
 */
export function transferCallbackHandler<C extends EventShape = TransferCallback, Tx = undefined>(
  options: TransferCallbackOptions<C, Tx, WebRequest>,
  ...surplus: never[]
): TransferCallbackHandler & { readonly receiver: TransferCallbackReceiver<CallbackOf<C>, Tx> } {
  const resolved = resolveHttpOptions(options, surplus);
  const receiveRequest = requestReceiver(resolved, readWebBody);

  const handle: TransferCallbackHandler = async (request, host: HostContext = {}) => {
    try {
      const received = await receiveRequest(request, findWaitUntil(host));
      // Nobody reads the response to a client that is gone.
      if (received === undefined) return new Response(null, { status: 400 });
      const { status, headers, body } = received.response;
      return new Response(body, { status, headers });
    } catch (error) {
      // An error handler of the host could respond 200.
      resolved.receiver.options.logger.error({ err: error }, 'A callback could not be responded to.');
      return new Response(null, { status: 500 });
    }
  };
  return Object.assign(handle, { receiver: resolved.receiver });
}

/** Returns `undefined` if there is none, or if reading it throws, as it does on some hosts without one. */
function findWaitUntil(host: HostContext): ((work: Promise<void>) => unknown) | undefined {
  try {
    // Some hosts have it as a method that needs its object.
    return hasMethods(host, 'waitUntil') ? (work) => host.waitUntil?.(work) : undefined;
  } catch {
    return undefined;
  }
}
