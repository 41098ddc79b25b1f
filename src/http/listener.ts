import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { CallbackShape, Given, TransferCallback } from '../core/callback.js';
import { invalidOption, invalidSecret, onlyKnownOptions, wholeNumber } from '../core/errors.js';
import { receiverOptionNames, type ReceiverOptions } from '../core/options.js';
import { transferCallbackReceiver, type TransferCallbackReceiver } from '../core/receiver.js';
import { sendAnswer } from './answers.js';
import { readBody } from './body.js';
import type { Verifier } from './verify.js';

/** What the HTTP edge adds to the receiver's options. */
export interface EdgeOptions<C, Request> {
  /**
   * Whom to believe, since callbacks carry no documented signature (service §6.7): `urlToken`, `transferToken`,
   * `headerToken`, `basicAuth`, `ipAllowList` or a function of your own; all of an array must say yes.
   */
  verify?: Verifier<Given<C>, Request> | readonly Verifier<Given<C>, Request>[] | undefined;
  /** The longest body that is read, in bytes. Default 102 400. What a parser in front has read is not counted. */
  bodyLimitBytes?: number | undefined;
}

/** The receiver's options and the edge's in one, or the edge's with a receiver made before. */
export type TransferCallbackOptions<C extends CallbackShape, Tx, Request> = EdgeOptions<C, Request> &
  ((ReceiverOptions<C, Tx> & { receiver?: never }) | { receiver: TransferCallbackReceiver<C, Tx> });

export const defaultBodyLimitBytes = 102_400;

/**
 * Makes a request listener that answers every request it is given as a delivery: for `http.createServer`, Connect, or
 * in front of an Express app on the same server. Throws INVALID_OPTION.
 */
export function transferCallbackListener<C extends CallbackShape = TransferCallback, Tx = undefined>(
  options: TransferCallbackOptions<C, Tx, IncomingMessage>,
): RequestListener {
  return deliveryListener(options);
}

/** The edge itself, for requests of any server that are Node's own underneath. */
export function deliveryListener<C extends CallbackShape, Tx, Request extends IncomingMessage>(
  options: TransferCallbackOptions<C, Tx, Request>,
): (request: Request, response: ServerResponse) => void {
  const { receiver, verifiers, bodyLimitBytes } = resolveEdgeOptions(options);
  const { logger } = receiver.options;

  async function answerDelivery(request: Request, response: ServerResponse): Promise<void> {
    const body = request.method === 'POST' ? await readBody(request, bodyLimitBytes) : wrongMethod;
    if (body.state === 'aborted') return;
    const fault = body.state === 'unreadable' ? body : undefined;
    const outcome = await receiver.receive(body.state === 'read' ? body.value : undefined, {
      source: 'http',
      admit: verifiers.length === 0 ? undefined : (callback) => everyVerifier(verifiers, request, callback),
      unreadable: fault && [{ path: [], message: fault.message }],
    });
    sendAnswer(response, outcome, fault, receiver.closing);
  }

  return function listenForTransferCallbacks(request, response) {
    answerDelivery(request, response).catch((error: unknown) => {
      // Another middleware has answered, or broken the response. Whatever it said, we cannot vouch for it.
      logger.error({ err: error }, 'A transfer callback could not be answered.');
      response.destroy();
    });
  };
}

const wrongMethod = { state: 'unreadable', status: 405, message: 'A callback is a POST.' } as const;

async function everyVerifier<C, Request>(
  verifiers: readonly Verifier<C, Request>[],
  request: Request,
  callback: C | undefined,
): Promise<boolean> {
  for (const verify of verifiers) {
    const verdict: unknown = await verify(request, callback);
    // Nothing but true: a verifier that forgot to answer, or answered with an object, has not said yes.
    if (verdict !== true) return false;
  }
  return true;
}

function resolveEdgeOptions<C extends CallbackShape, Tx, Request>(options: TransferCallbackOptions<C, Tx, Request>) {
  const madeBefore = (options as { receiver?: unknown } | null | undefined)?.receiver !== undefined;
  onlyKnownOptions(options, ['verify', 'bodyLimitBytes', ...(madeBefore ? ['receiver'] : receiverOptionNames)]);
  const { verify, bodyLimitBytes = defaultBodyLimitBytes, ...rest } = options;

  const verifiers = verify === undefined ? [] : [verify].flat();
  if (verify !== undefined && (verifiers.length === 0 || verifiers.some((each) => typeof each !== 'function'))) {
    throw invalidSecret('verify', 'a function or a list of at least one', verify);
  }
  wholeNumber('bodyLimitBytes', bodyLimitBytes, 1, Number.MAX_SAFE_INTEGER);
  const receiver = rest.receiver ?? transferCallbackReceiver(rest);
  if (typeof (receiver as Partial<typeof receiver> | null)?.receive !== 'function') {
    throw invalidOption('receiver', 'made by transferCallbackReceiver()', receiver);
  }
  const { confirm, logger } = receiver.options;
  if (verifiers.length === 0 && confirm === undefined && process.env.NODE_ENV === 'production') {
    logger.warn({}, 'Transfer callbacks are believed from anyone: set `verify` or `confirm`.');
  }
  return { receiver, verifiers, bodyLimitBytes };
}
