import type { CallbackShape } from '../core/callback.js';
import type { WaitUntil } from '../core/delivery.js';
import type { ReceiveOptions } from '../core/receiver.js';
import type { VerifySender } from '../core/verify.js';
import { consumed, RequestFault, type ReadBody } from './body.js';
import type { ResolvedHttpOptions } from './options.js';
import type { SenderRequest, Verifier } from './request.js';
import { toResponse, type CallbackResponse } from './responses.js';
import { Refused } from '../core/validate.js';
import { notSynchronous } from '../lib/checks.js';
import { TransferCallbackError, toReason } from '../lib/errors.js';

const bodyThrows = '`request.body` throws when it is read: mount the router before the middleware that sets it.';
const wrongMethod = new RequestFault(405, 'A callback is a POST.');

/**
 * Makes the function that turns a request into a delivery, and its outcome into the response. It is the same for all
 * hosts, except for how `readBody` reads a body. Both resolve with `undefined` if the client has disconnected.
 */
export function requestReceiver<C extends CallbackShape, Tx, HostRequest extends SenderRequest>(
  { receiver, verifiers, bodyLimitBytes }: ResolvedHttpOptions<C, Tx, HostRequest>,
  readBody: (request: HostRequest, limitBytes: number) => ReadBody | Promise<ReadBody | undefined>,
): (
  request: HostRequest,
  waitUntil?: WaitUntil,
) => Promise<{ delivery: string; response: CallbackResponse } | undefined> {
  // A log line names a verifier as `verifier 2 of 2, urlToken`. One of this package has the name of its maker.
  const named = verifiers.map((verify, index) => {
    const place = `verifier ${index + 1} of ${verifiers.length}`;
    return { verify, by: verify.name === '' ? place : `${place}, ${verify.name}` };
  });
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
    const verify = (callback: C | undefined) => late.length === 0 || acceptsAll(late, request, callback, bytes);
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

const bytesAreGone =
  'A verifier needs the bytes of the body, and your app has parsed it without leaving them as a Buffer in ' +
  'request.rawBody: mount the router before that middleware.';

interface NamedVerifier<C, HostRequest> {
  readonly verify: Verifier<C, HostRequest>;
  readonly by: string;
}

/** Calls the verifiers in order. Resolves with `true` if all of them accept. */
async function acceptsAll<C, HostRequest>(
  verifiers: readonly NamedVerifier<C, HostRequest>[],
  request: HostRequest,
  callback: C | undefined,
  bytes: ReadBody['bytes'],
): Promise<true | Refused> {
  for (const { verify, by } of verifiers) {
    try {
      if (bytes === 'gone' && verify.readsBody === true) throw new TransferCallbackError('BODY_CONSUMED', bytesAreGone);
      const body = bytes === 'gone' ? undefined : bytes;
      const verdict: unknown = await verify(request, callback, body);
      // Only `true` counts: a verifier that forgets to return, or returns an object, has not approved.
      if (verdict !== true) return new Refused(verify.explain ? `${by}: ${verify.explain(request, body)}` : by);
    } catch (error) {
      return new Refused(by, toReason(error));
    }
  }
  return true;
}

const promiseInPlaceOfBoolean = 'Expected a verifier with `readsCallback: false` to return a boolean, got a promise.';

/** Calls the verifiers that need no callback. Returns `undefined` if all of them accept. Never throws. */
function findRefused<C, HostRequest>(
  verifiers: readonly NamedVerifier<C, HostRequest>[],
  request: HostRequest,
): Refused | undefined {
  for (const { verify, by } of verifiers) {
    try {
      const verdict: unknown = verify(request, undefined, undefined);
      if (verdict instanceof Promise) throw notSynchronous(verdict, promiseInPlaceOfBoolean);
      if (verdict !== true) return new Refused(by);
    } catch (error) {
      return new Refused(by, toReason(error));
    }
  }
  return undefined;
}
