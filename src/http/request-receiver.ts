import type { CallbackShape } from '../core/callback.js';
import type { WaitUntil } from '../core/delivery.js';
import type { ReceiveOptions } from '../core/receiver.js';
import type { HostVerify, VerifySender } from '../core/verify.js';
import { consumed, RequestFault, type ReadBody } from './content.js';
import type { ResolvedHttpOptions } from './options.js';
import type { SenderRequest } from './request.js';
import { toResponse, type CallbackResponse } from './responses.js';
import { acceptsAll, findRefused, nameVerifiers } from './call-verifiers.js';

/** The response to a request, and the name of its delivery in the logs. */
export interface ReceivedRequest {
  readonly delivery: string;
  readonly response: CallbackResponse;
}

const bodyThrows = '`request.body` throws when it is read: mount the router before the middleware that sets it.';
const wrongMethod = new RequestFault(405, 'A callback is a POST.');

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
): (request: HostRequest, waitUntil?: WaitUntil) => Promise<ReceivedRequest | undefined> {
  const named = nameVerifiers(verifiers);
  const early = named.filter(({ verify }) => verify.readsCallback === false);
  const late = named.filter(({ verify }) => verify.readsCallback !== false);

  async function read(request: HostRequest): Promise<ReadBody | undefined> {
    const refused = findRefused(early, request);
    if (refused !== undefined) return { input: refused };
    if (request.method !== 'POST') return { input: wrongMethod };
    try {
      return await readBody(request, bodyLimitBytes);
    } catch (error) {
      return { input: consumed(bodyThrows, { cause: error }) };
    }
  }

  /** With a `verify` the receiver counts the sender as verified. The early verifiers have accepted by then. */
  function toVerify(request: HostRequest, bytes: ReadBody['bytes']): Pick<ReceiveOptions<C>, 'verify'> {
    if (verifiers.length === 0) return {};
    if (late.length === 0) return { verify: () => true };
    const verify: HostVerify<C> = (callback) => acceptsAll(late, request, callback, bytes);
    // For a caller of `receive` a verdict is a boolean.
    return { verify: verify as VerifySender<C> };
  }

  return async function receiveRequest(request, waitUntil) {
    const body = await read(request);
    if (body === undefined) return undefined;
    const { input, bytes } = body;
    const outcome = await receiver.receive(input, { source: 'http', waitUntil, ...toVerify(request, bytes) });
    const fault = input instanceof RequestFault ? input : undefined;
    return { delivery: outcome.delivery, response: toResponse(outcome, fault) };
  };
}
