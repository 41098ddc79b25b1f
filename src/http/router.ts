import { Router, type Request } from 'express';
import type { CallbackShape, TransferCallback } from '../core/callback.js';
import { deliveryListener, type TransferCallbackOptions } from './listener.js';

/**
 * Makes the router: mount it with `app.use(path, router)`, before or after `express.json()` or any other parser. It
 * answers POST at that path, and one segment below it for `urlToken` and `transferToken`, by itself: it never calls
 * `next` with an error, because an app's error handler that answers 200 would acknowledge a failure. Throws
 * INVALID_OPTION.
 */
export function transferCallbackRouter<C extends CallbackShape = TransferCallback, Tx = undefined>(
  options: TransferCallbackOptions<C, Tx, Request>,
): Router {
  const listen = deliveryListener(options);
  const router = Router();
  router.use(function receiveDelivery(request, response, next) {
    if (/^\/[^/]*\/?$/.test(request.path)) listen(request, response);
    else next();
  });
  return router;
}
