import type { IncomingMessage } from 'node:http';
import type { TransferCallback } from '../core/callback.js';
import { TransferCallbackError } from '../core/errors.js';

/**
 * Decides whether a request comes from the service. Only `true` accepts; a throw rejects. Also called for invalid
 * callbacks, with `undefined`. Give a function of your own its properties with `Object.assign(verify, { … })`; a function
 * that wraps a verifier needs them too.
 */
export interface Verifier<C = TransferCallback, Request = IncomingMessage> {
  (request: Request, callback: C | undefined): boolean | Promise<boolean>;
  /**
   * `true` if it reads the last segment of the URL's path: the router then also receives POST one segment below its
   * mount path. Without it the router leaves such requests to the app. Default `false`.
   */
  readonly readsPath?: boolean | undefined;
  /**
   * `false` if it needs no callback and is synchronous: it is then called before the body is read, and before verifiers
   * that need the callback, so that the body of a refused sender is never read. Default `true`.
   */
  readonly readsCallback?: boolean | undefined;
}

/** Calls the verifiers one after the other, and resolves with whether all of them accept. */
export async function acceptsAll<C, Request>(
  verifiers: readonly Verifier<C, Request>[],
  request: Request,
  callback: C | undefined,
): Promise<boolean> {
  for (const verify of verifiers) {
    const verdict: unknown = await verify(request, callback);
    // Only `true` counts: a verifier that forgets to return, or returns an object, has not approved.
    if (verdict !== true) return false;
  }
  return true;
}

/**
 * Calls the verifiers that need no callback. Returns `undefined` if all of them accept, and otherwise the `verify` with
 * which the receiver reports the refusal.
 */
export function findRefusal<C, Request>(
  verifiers: readonly Verifier<C, Request>[],
  request: Request,
): (() => boolean) | undefined {
  for (const verify of verifiers) {
    try {
      const verdict: unknown = verify(request, undefined);
      if (verdict instanceof Promise) throw notSynchronous(verdict);
      if (verdict !== true) return () => false;
    } catch (error) {
      return () => {
        throw error;
      };
    }
  }
  return undefined;
}

function notSynchronous(verdict: Promise<unknown>): TransferCallbackError {
  // Nobody awaits it: a rejection would end the process.
  verdict.catch(() => undefined);
  return new TransferCallbackError(
    'INVALID_ARGUMENT',
    'Expected a verifier with `readsCallback: false` to return a boolean, got a promise.',
  );
}
