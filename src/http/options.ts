import type { IncomingMessage } from 'node:http';
import type { CallbackOf, CallbackShape, EventShape, TransferCallback } from '../core/callback.js';
import { hasMethods, invalidArgument, invalidSecret, onlyKnownOptions, wholeNumber } from '../lib/checks.js';
import type { ReceiverOptions } from '../core/options.js';
import { transferCallbackReceiver, type TransferCallbackReceiver } from '../core/receiver.js';
import { receiverOptionNames } from '../core/resolve-options.js';
import { requireVerifiers, verifyExample } from '../core/verify.js';
import type { Verifier } from './request.js';

/** The options that the router, the listener and the handler have beside the options of the receiver. */
export interface HttpOptions<C = TransferCallback, HostRequest = IncomingMessage> {
  /**
   * Decides whether the sender is trusted: `urlToken`, `transferToken`, `headerToken`, `basicAuth`, `ipAllowList`,
   * `hmacSignature`, `publicKeySignature`, `messageSignature` or your own function. In a list, all must accept.
   * Callbacks carry no documented signature (service §6.7). The `verify` of the `service` must also accept, and is
   * called first. Unlike the other options it may not be `undefined`: every sender would be trusted.
   * @default none: the `verify` of the `service` decides
   */
  verify?: NoInfer<Verifier<C, HostRequest> | readonly Verifier<C, HostRequest>[]>;
  /**
   * The longest body that is read, in bytes. A body that a parser has read before is not limited.
   * @default 102_400
   */
  bodyLimitBytes?: number | undefined;
}

/**
 * The HTTP options, together with the options of the receiver or with an existing receiver.
 *
 * @example
 * const options: TransferCallbackOptions = { receiver, verify: urlToken(process.env.CALLBACK_SECRET) };
 */
export type TransferCallbackOptions<
  C extends EventShape = TransferCallback,
  Tx = undefined,
  HostRequest = IncomingMessage,
> = HttpOptions<CallbackOf<C>, HostRequest> &
  ((ReceiverOptions<C, Tx> & { receiver?: never }) | { receiver: TransferCallbackReceiver<CallbackOf<C>, Tx> });

/** The validated options with defaults applied. */
export interface ResolvedHttpOptions<C extends CallbackShape, Tx, HostRequest> {
  readonly receiver: TransferCallbackReceiver<C, Tx>;
  readonly verifiers: readonly Verifier<C, HostRequest>[];
  readonly bodyLimitBytes: number;
}

export const defaultBodyLimitBytes = 102_400;

/** Checks the options and makes the receiver. Throws INVALID_ARGUMENT. */
export function resolveHttpOptions<C extends EventShape, Tx, HostRequest>(
  options: TransferCallbackOptions<C, Tx, HostRequest>,
  surplus: readonly unknown[],
): ResolvedHttpOptions<CallbackOf<C>, Tx, HostRequest> {
  // A `verify` beside the options would be ignored, and every sender trusted.
  if (surplus.length > 0) {
    throw invalidSecret('options', 'left out', surplus[0], 'transferCallbackRouter({ receiver, verify })');
  }
  const madeBefore = (options as { receiver?: unknown } | null | undefined)?.receiver !== undefined;
  const known = ['verify', 'bodyLimitBytes', ...(madeBefore ? ['receiver'] : receiverOptionNames)];
  onlyKnownOptions(options, known, { findPlace: findReceiverOption });
  const { verify, bodyLimitBytes = defaultBodyLimitBytes, ...rest } = options;
  // A `verify` without a value, such as the verifier of an unknown tenant, must not mean that every sender is trusted.
  if ('verify' in options) requireVerifiers(verify);
  wholeNumber('bodyLimitBytes', bodyLimitBytes, {
    min: 1,
    max: Number.MAX_SAFE_INTEGER,
    example: defaultBodyLimitBytes,
  });
  if (madeBefore) requireReceiver(rest.receiver);
  const receiver = rest.receiver ?? transferCallbackReceiver(rest as ReceiverOptions<C, Tx>);
  const { confirm, onOther, logger } = receiver.options;
  // A receiver made by hand may have none.
  const { service } = receiver.options as Partial<typeof receiver.options>;
  // Each once, because a verifier that refuses replays would refuse its second call.
  const given = new Set([service?.verify ?? [], verify ?? []].flat());
  const verifiers = [...given] as Verifier<CallbackOf<C>, HostRequest>[];
  if (verifiers.filter(({ readsPath }) => readsPath === true).length > 1) {
    // Two tokens would never both be the last segment of one path.
    const expected =
      'verifiers of which at most one reads the path, that of the `service` included: one URL has one token';
    throw invalidSecret('verify', expected, verifiers);
  }
  if (verifiers.length === 0 && confirm !== undefined && onOther !== undefined) {
    // `confirm` queries transfers. A forged event for `onOther` would make the real one a duplicate.
    const expected = 'given beside `onOther`, whose events `confirm` cannot vouch for';
    throw invalidSecret('verify', expected, undefined, verifyExample);
  }
  if (verifiers.length === 0 && confirm === undefined && process.env.NODE_ENV === 'production') {
    logger.warn({}, 'Every sender of callbacks is trusted: set `verify` or `confirm`.');
  }
  return { receiver, verifiers, bodyLimitBytes };
}

function findReceiverOption(name: string): string | undefined {
  if (name === 'receive') return 'Give the receiver as an option: `transferCallbackRouter({ receiver, verify })`.';
  if (!receiverOptionNames.includes(name)) return undefined;
  return `It belongs to the receiver that you have given: \`transferCallbackReceiver({ ${name}, … })\`.`;
}

function requireReceiver(receiver: unknown): void {
  const { options } = (receiver ?? {}) as { options?: unknown };
  if (hasMethods(receiver, 'receive') && typeof options === 'object' && options !== null) return;
  throw invalidArgument('receiver', 'a receiver', receiver, 'receiver: transferCallbackReceiver(options)');
}
