import { Router, type Request } from 'express';
import type { CallbackShape, TransferCallback } from '../core/callback.js';
import { deliveryListener } from './listener.js';
import { resolveHttpOptions, type TransferCallbackOptions } from './options.js';

/** Express's request under a name of this package, so that editors show short types. */
// eslint-disable-next-line @typescript-eslint/no-empty-object-type -- editors would show a type alias in full.
export interface ExpressRequest extends Request {}

/**
 * Makes the router. Mount it with `app.use(path, router)`, best before `express.json()` and other parsers. It handles
 * POST at its mount path, and responds 405 to other methods there. It also handles POST one segment below if a verifier
 * reads that segment, as `urlToken` and `transferToken` do. It leaves all other requests to the app. It never calls
 * `next` with an error, because an app's error handler that responds 200 would acknowledge a failure. Throws
 * INVALID_ARGUMENT.
 */
export function transferCallbackRouter<C extends CallbackShape = TransferCallback, Tx = undefined>(
  options: TransferCallbackOptions<C, Tx, ExpressRequest>,
): Router {
  const resolved = resolveHttpOptions(options);
  const listen = deliveryListener(resolved);
  const readsPath = resolved.verifiers.some((verify) => verify.readsPath === true);
  const router = Router();
  router.use(function receiveDelivery(request, response, next) {
    const isToken = readsPath && request.method === 'POST' && /^\/[^/]+\/?$/.test(request.path);
    if (request.path === '/' || isToken) listen(request, response);
    else next();
  });
  return router;
}
