import { Router, type Request } from 'express';
import type { CallbackOf, EventShape, TransferCallback } from '../core/callback.js';
import type { TransferCallbackReceiver } from '../core/receiver.js';
import { deliveryListener } from './listener.js';
import { resolveHttpOptions, type TransferCallbackOptions } from './options.js';

/** Express's request under a name of this package, so that editors show short types. */
// eslint-disable-next-line @typescript-eslint/no-empty-object-type -- editors would show a type alias in full.
export interface ExpressRequest extends Request {}

/**
 * Makes the router. Mount it with `app.post(path, router)`, best before `express.json()` and other parsers. With
 * `urlToken` or `transferToken` the path ends in the token: `app.post('/callbacks/transfers/:token', router)`. Every
 * request that a route hands over is a delivery.
 *
 * With `app.use(path, router)` it handles POST at its mount path, and responds 405 to other methods there. It also
 * handles POST one segment below if a verifier reads that segment. It leaves all other requests to the app.
 *
 * It never calls `next` with an error, because an app's error handler that responds 200 would acknowledge a failure.
 * `router.receiver` is the receiver, for `closeOnSignal`, reconciliation and the commands. Throws INVALID_ARGUMENT.
 *
 * @example
 * const router = transferCallbackRouter({
 *   store,
 *   onSuccess: ({ data }) => markPaid(data.externalId),
 *   onFailed: ({ data }) => refund(data.externalId, data.failureReason),
 * });
 * app.post('/callbacks/transfers', router);
 */
export function transferCallbackRouter<C extends EventShape = TransferCallback, Tx = undefined>(
  options: TransferCallbackOptions<C, Tx, ExpressRequest>,
  ...surplus: never[]
): Router & { readonly receiver: TransferCallbackReceiver<CallbackOf<C>, Tx> } {
  const resolved = resolveHttpOptions(options, surplus);
  const listen = deliveryListener(resolved);
  const readsPath = resolved.verifiers.some((verify) => verify.readsPath === true);
  // A verifier may read the parameters of the route.
  const router = Router({ mergeParams: true });
  let hasWarned = false;
  router.use(function receiveDelivery(request, response, next) {
    const isPost = request.method === 'POST';
    const isToken = readsPath && isPost && /^\/[^/]+\/?$/.test(request.path);
    if (request.path === '/' || isToken || isRouteOf(router, request)) {
      listen(request, response);
      return;
    }
    // Express sets `route` for a handler of `app.post`, whatever that handler calls.
    if (isPost && 'route' in request && !hasWarned) {
      hasWarned = true;
      resolved.receiver.options.logger.warn({}, leftToApp);
    }
    next();
  });
  routerCount += 1;
  // `isRouteOf` looks for this name. Another router may be in a route that was left by `next('route')`.
  Object.defineProperty(router, 'name', { value: `transferCallbackRouter${routerCount}` });
  return Object.assign(router, { receiver: resolved.receiver });
}

let routerCount = 0;

const leftToApp =
  'A POST was left to the app, because its route calls a function that may wrap this router: pass the router itself ' +
  'to `app.post`.';

/** What Express, but not every framework that takes its routers, sets as `request.route`. */
interface Route {
  readonly stack?: readonly { readonly handle: { readonly name: string; readonly stack?: unknown } }[];
}

/**
 * Returns whether a route, such as `app.post` makes, hands `request` over. Express never clears `request.route`: under
 * `use` it may be the route of an `app.all('*', …)` that has called `next`.
 */
function isRouteOf(router: Router, request: Request): boolean {
  const { route } = request as { route?: Route };
  // Tracers wrap the handlers of a route: New Relic keeps only their names, express-async-errors only their properties.
  return route?.stack?.some(({ handle }) => handle.stack === router.stack || handle.name === router.name) ?? false;
}
