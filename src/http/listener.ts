import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import { UnreadableCallback, type CallbackShape, type TransferCallback } from '../core/callback.js';
import { toResponse } from './responses.js';
import { readBody, RefusedRequest } from './body.js';
import { resolveHttpOptions, type ResolvedHttpOptions, type TransferCallbackOptions } from './options.js';
import { respond } from './respond.js';
import { acceptsAll, findRefusal } from './verifier.js';

/** A request listener for `http.createServer`, and for `http2.createSecureServer` with its compatibility API. */
export type TransferCallbackListener = (
  request: IncomingMessage | Http2ServerRequest,
  response: ServerResponse | Http2ServerResponse,
) => void;

/**
 * Makes a request listener that treats every request as a delivery. Use it with `http.createServer`, with Connect, or
 * in front of an Express app on the same server. Throws INVALID_ARGUMENT.
 */
export function transferCallbackListener<C extends CallbackShape = TransferCallback, Tx = undefined>(
  options: TransferCallbackOptions<C, Tx>,
): TransferCallbackListener {
  // The cast is safe: HTTP/2's compatibility API has every property that this package uses.
  return deliveryListener(resolveHttpOptions(options)) as TransferCallbackListener;
}

const refused = new UnreadableCallback('The sender was refused before the body was read.');
const wrongMethod = new RefusedRequest(405, 'A callback is a POST.');

/** Makes the listener for every server whose requests extend Node's own. */
export function deliveryListener<C extends CallbackShape, Tx, Request extends IncomingMessage>({
  receiver,
  verifiers,
  bodyLimitBytes,
}: ResolvedHttpOptions<C, Tx, Request>): (request: Request, response: ServerResponse) => void {
  const early = verifiers.filter(({ readsCallback }) => readsCallback === false);
  const late = verifiers.filter(({ readsCallback }) => readsCallback !== false);

  async function respondToDelivery(request: Request, response: ServerResponse): Promise<void> {
    let delivery: string | undefined;
    try {
      const refusal = findRefusal(early, request);
      let input: unknown = refused;
      if (refusal === undefined) {
        input = request.method === 'POST' ? await readBody(request, bodyLimitBytes) : wrongMethod;
      }
      if (input === undefined) return; // The client is gone.
      const outcome = await receiver.receive(input, {
        source: 'http',
        verify: verifiers.length === 0 ? undefined : (refusal ?? ((callback) => acceptsAll(late, request, callback))),
      });
      ({ delivery } = outcome);
      const fault = input instanceof RefusedRequest ? input : undefined;
      respond(request, response, toResponse(outcome, fault), {
        closes: receiver.closing || fault?.status === 413,
        unread: !request.readableEnded,
        bodyLimitBytes,
      });
    } catch (error) {
      // Other middleware has already responded. Close the connection: its status must not pass for ours.
      receiver.options.logger.error({ delivery, err: error }, 'A transfer callback could not be responded to.');
      response.destroy();
    }
  }

  return function listenForTransferCallbacks(request, response) {
    void respondToDelivery(request, response);
  };
}
