import { UnreadableCallback, type CallbackShape } from '../core/callback.js';
import { consumed, RefusedRequest } from './content.js';
import type { ResolvedHttpOptions } from './options.js';
import type { SenderRequest } from './request.js';
import { toResponse, type CallbackResponse } from './responses.js';
import { acceptsAll, findRefusal } from './verify.js';

/** The response to a request, and the name of its delivery in the logs. */
export interface ReceivedRequest {
  readonly delivery: string;
  readonly response: CallbackResponse;
}

const refused = 'The sender was refused before the body was read.';
const bodyThrows = '`request.body` throws when it is read: mount the router before the middleware that sets it.';
const wrongMethod = new RefusedRequest(405, 'A callback is a POST.');

/**
 * Makes the function that turns a request into a delivery, and its outcome into the response. It is the same for all
 * hosts, except for how `readBody` reads a body. Both resolve with `undefined` if the client has disconnected.
 */
export function requestReceiver<
  C extends CallbackShape,
  Tx,
  HostRequest extends SenderRequest & { readonly method?: string | undefined },
>(
  { receiver, verifiers, bodyLimitBytes }: ResolvedHttpOptions<C, Tx, HostRequest>,
  readBody: (request: HostRequest, limitBytes: number) => unknown,
): (request: HostRequest) => Promise<ReceivedRequest | undefined> {
  const early = verifiers.filter(({ readsCallback }) => readsCallback === false);
  const late = verifiers.filter(({ readsCallback }) => readsCallback !== false);

  async function readInput(request: HostRequest): Promise<unknown> {
    try {
      return await readBody(request, bodyLimitBytes);
    } catch (error) {
      return consumed(bodyThrows, { cause: error });
    }
  }

  return async function receiveRequest(request) {
    const refusal = findRefusal(early, request);
    let input: unknown = wrongMethod;
    if (refusal !== undefined) input = new UnreadableCallback(refused, undefined, refusal);
    else if (request.method === 'POST') input = await readInput(request);
    if (input === undefined) return undefined;
    const outcome = await receiver.receive(input, {
      source: 'http',
      verify:
        verifiers.length === 0 ? undefined : (callback) => late.length === 0 || acceptsAll(late, request, callback),
    });
    const fault = input instanceof RefusedRequest ? input : undefined;
    return { delivery: outcome.delivery, response: toResponse(outcome, fault) };
  };
}
