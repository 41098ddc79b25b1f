import type { EventShape, TransferCallback } from '../core/callback.js';
import { resolveHttpOptions, type TransferCallbackOptions } from './options.js';
import { requestReceiver } from './request-receiver.js';
import { readWebBody } from './web-body.js';

/** A web request. Set `ip` to the address of the sender if you use `ipAllowList`. */
export type WebRequest = Request & { readonly ip?: string | undefined };

/** A handler for hosts that give a web `Request` and want a `Response`. It never rejects. */
export type TransferCallbackHandler = (request: WebRequest) => Promise<Response>;

/**
 * Makes a handler that treats every web request as a delivery, for Next.js, Hono, Bun, Deno and other hosts of the Fetch
 * API. Its responses are those of the router. Throws INVALID_ARGUMENT.
 *
 * @example
 * export const POST = transferCallbackHandler({ store, onSuccess, onFailed }); // a route of Next.js
 */
export function transferCallbackHandler<C extends EventShape = TransferCallback, Tx = undefined>(
  options: TransferCallbackOptions<C, Tx, WebRequest>,
): TransferCallbackHandler {
  const resolved = resolveHttpOptions(options);
  const receiveRequest = requestReceiver(resolved, readWebBody);

  return async function handleTransferCallback(request) {
    try {
      const received = await receiveRequest(request);
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
}
