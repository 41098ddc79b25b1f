import type { IncomingMessage } from 'node:http';
import type { TransferCallback } from '../core/callback.js';
import { Refused } from '../core/validate.js';
import { notSynchronous } from '../lib/checks.js';
import { TransferCallbackError, toReason } from '../lib/errors.js';
import type { ReadBody } from './content.js';

/**
 * Decides whether a request comes from the service. Only `true` accepts; a throw rejects. `callback` is `undefined` for
 * an invalid callback and for an event of `onOther`. `body` has the bytes as they were received, of any body, and is
 * `undefined` if there are none. Set the properties of your own function with `Object.assign(verify, { … })`. A
 * function that wraps a verifier needs the same properties.
 *
 * @example
 * const comesFromTunnel: Verifier = (request) => request.socket.remoteAddress === '127.0.0.1';
 */
export interface Verifier<C = TransferCallback, HostRequest = IncomingMessage> {
  (request: HostRequest, callback: C | undefined, body: Uint8Array | undefined): boolean | Promise<boolean>;
  /**
   * `true` if it reads the last segment of the URL's path. Under `app.use` the router then also handles POST one
   * segment below its mount path; otherwise it leaves such requests to the app.
   * @default false
   */
  readonly readsPath?: boolean | undefined;
  /**
   * `false` if it is synchronous and needs neither the callback nor the body. It is then called before the body is
   * read, so that the body of a refused sender is never read.
   * @default true
   */
  readonly readsCallback?: boolean | undefined;
  /**
   * `true` if it cannot accept a request without the bytes of its body, as a signature. Where the app has parsed the
   * body and left no bytes, it is not called: the sender is refused, and the log has BODY_CONSUMED.
   * @default false
   */
  readonly readsBody?: boolean | undefined;
  /**
   * Returns why it has refused a request, for `refusedBy` of the log line. The sender does not read it, but it must
   * contain no secret and no signature.
   * @default none
   */
  readonly explain?: ((request: HostRequest, body: Uint8Array | undefined) => string) | undefined;
}

const bytesAreGone =
  'A verifier needs the bytes of the body, and your app has parsed it without leaving them as a Buffer in ' +
  'request.rawBody: mount the router before that middleware.';

/** A verifier, and how a log line names it: by its place among all verifiers, and by its name. */
export interface NamedVerifier<C, HostRequest> {
  readonly verify: Verifier<C, HostRequest>;
  readonly by: string;
}

/** Names each verifier, such as `verifier 2 of 2, urlToken`. One of this package has the name of its maker. */
export function nameVerifiers<C, HostRequest>(
  verifiers: readonly Verifier<C, HostRequest>[],
): readonly NamedVerifier<C, HostRequest>[] {
  return verifiers.map((verify, index) => {
    const place = `verifier ${index + 1} of ${verifiers.length}`;
    return { verify, by: verify.name === '' ? place : `${place}, ${verify.name}` };
  });
}

/** Calls the verifiers in order. Resolves with `true` if all of them accept. */
export async function acceptsAll<C, HostRequest>(
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
export function findRefused<C, HostRequest>(
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
