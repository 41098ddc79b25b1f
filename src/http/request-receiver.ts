import { isUnreadable, UnreadableCallback, type CallbackShape } from '../core/callback.js';
import { consumed, RefusedRequest, type ReadBody } from './content.js';
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
  readBody: (request: HostRequest, limitBytes: number) => ReadBody | Promise<ReadBody | undefined>,
): (request: HostRequest) => Promise<ReceivedRequest | undefined> {
  const early = verifiers.filter(({ readsCallback }) => readsCallback === false);
  const late = verifiers.filter(({ readsCallback }) => readsCallback !== false);

  async function read(request: HostRequest): Promise<ReadBody | undefined> {
    const refusal = findRefusal(early, request);
    if (refusal !== undefined) return { input: new UnreadableCallback(refused, undefined, refusal) };
    if (request.method !== 'POST') return { input: wrongMethod };
    try {
      const body = await readBody(request, bodyLimitBytes);
      // What the app has left may throw when it is read.
      isUnreadable(body?.input);
      return body;
    } catch (error) {
      return { input: consumed(bodyThrows, { cause: error }) };
    }
  }

  return async function receiveRequest(request) {
    const body = await read(request);
    if (body === undefined) return undefined;
    const { input } = body;
    const outcome = await receiver.receive(input, {
      source: 'http',
      verify:
        verifiers.length === 0
          ? undefined
          : (callback) => late.length === 0 || acceptsAll(late, request, callback, body.bytes),
    });
    const fault = input instanceof RefusedRequest ? input : undefined;
    return { delivery: outcome.delivery, response: toResponse(outcome, fault) };
  };
}
