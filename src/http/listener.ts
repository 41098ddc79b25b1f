import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import type { CallbackOf, CallbackShape, EventShape, TransferCallback } from '../core/callback.js';
import type { TransferCallbackReceiver } from '../core/receiver.js';
import { readBody } from './body.js';
import { resolveHttpOptions, type ResolvedHttpOptions, type TransferCallbackOptions } from './options.js';
import { requestReceiver } from './request-receiver.js';
import { respond } from './responses.js';

/** A request listener for `http.createServer`, and for `http2.createSecureServer` with its compatibility API. */
export type TransferCallbackListener = (
  request: IncomingMessage | Http2ServerRequest,
  response: ServerResponse | Http2ServerResponse,
) => void;

/**
 * Makes a request listener that treats every request as a delivery. Use it with `http.createServer`, with Connect, or
 * in front of an Express app on the same server. Its property `receiver` is the receiver. Throws INVALID_ARGUMENT.
 *
 * @example
 * createServer(transferCallbackListener({ store, onSuccess, onFailed })).listen(3000);
 */
export function transferCallbackListener<C extends EventShape = TransferCallback, Tx = undefined>(
  options: TransferCallbackOptions<C, Tx>,
  ...surplus: never[]
): TransferCallbackListener & { readonly receiver: TransferCallbackReceiver<CallbackOf<C>, Tx> } {
  const resolved = resolveHttpOptions(options, surplus);
  // The cast is safe: HTTP/2's compatibility API has every property that this package uses.
  const listener = deliveryListener(resolved) as TransferCallbackListener;
  return Object.assign(listener, { receiver: resolved.receiver });
}

/** Makes the listener for every server whose requests extend Node's own. */
export function deliveryListener<C extends CallbackShape, Tx, HostRequest extends IncomingMessage>(
  options: ResolvedHttpOptions<C, Tx, HostRequest>,
): (request: HostRequest, response: ServerResponse) => void {
  const { receiver, bodyLimitBytes } = options;
  const receiveRequest = requestReceiver(options, readBody);

  async function respondToDelivery(request: HostRequest, response: ServerResponse): Promise<void> {
    let delivery: string | undefined;
    try {
      const received = await receiveRequest(request);
      if (received === undefined) return; // The client is gone.
      delivery = received.delivery;
      respond(request, response, received.response, { isClosing: receiver.closing, bodyLimitBytes });
    } catch (error) {
      // Other middleware has already responded. Close the connection: its status must not pass for ours.
      receiver.options.logger.error({ delivery, err: error }, 'A callback could not be responded to.');
      response.destroy();
    }
  }

  return function listenForTransferCallbacks(request, response) {
    void respondToDelivery(request, response);
  };
}
