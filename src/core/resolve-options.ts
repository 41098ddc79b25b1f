import { hasMethods, invalidArgument, onlyKnownOptions, requireFunction } from '../lib/checks.js';
import { toLogger, type SafeLogger } from '../lib/logger.js';
import type { CallbackOf, EventShape } from './callback.js';
import type { Confirm, ReceiverOptions, ResolvedOptions } from './options.js';
import { receiverDefaults, resolveTimes } from './times.js';
import { documentedService } from './documented.js';
import type { PayoutService } from './payout-service.js';
import type { CallbackStore } from './store.js';
import { requireVerifiers } from './verify.js';

export const receiverOptionNames = [
  'store',
  'onSuccess',
  'onFailed',
  'onReversed',
  'onOther',
  'service',
  'confirm',
  'onOutcome',
  'logger',
  ...Object.keys(receiverDefaults),
];

/** Clients and pools, each with a method that only it has, and the code that makes a store from it. */
const clients = [
  ['sendCommand', 'redisStore(redis)'],
  ['$transaction', "prismaStore(prisma, { dialect: 'postgres' })"],
  ['getConnection', 'mysqlStore(pool)'],
  ['connect', 'pgStore(pool)'],
] as const;

function findRouterOption(name: string): string | undefined {
  if (name !== 'verify' && name !== 'bodyLimitBytes') return undefined;
  return `It belongs to the router, the listener or the handler: \`transferCallbackRouter({ receiver, ${name} })\`.`;
}

/** Validates the options and applies the defaults. Reads each option once. Throws INVALID_ARGUMENT. */
export function resolveReceiverOptions<C extends EventShape, Tx>(
  options: ReceiverOptions<C, Tx>,
): ResolvedOptions<CallbackOf<C>, Tx> & { readonly logger: SafeLogger } {
  onlyKnownOptions(options, receiverOptionNames, { findPlace: findRouterOption });
  const { store, onSuccess, onOutcome, logger } = options;
  const { onFailed, onReversed, onOther } = options as Partial<ResolvedOptions<CallbackOf<C>, Tx>>;
  if (!hasMethods(store, 'claim')) {
    const expected = 'a store, such as pgStore(pool), redisStore(client), or memoryStore() in a test';
    const [, example] = clients.find(([method]) => hasMethods(store, method)) ?? [];
    throw invalidArgument('store', expected, store, `store: ${example ?? 'pgStore(pool)'}`);
  }
  requireFunction('onSuccess', onSuccess, unwritten);
  const service = resolveService(options);
  requireOtherHandlers(service, { onFailed, onReversed, onOther });
  if (onReversed !== undefined) requireForReversals(store, options.retentionMs);
  if (onOutcome !== undefined) requireFunction('onOutcome', onOutcome, '(outcome) => {}');
  if (logger !== undefined && logger !== false && !hasMethods(logger, 'warn', 'error')) {
    throw invalidArgument('logger', 'false or an object with warn and error', logger, 'logger: console');
  }
  return {
    store,
    // Bind the handlers: if the options are an instance of a class, they need its `this`.
    onSuccess: onSuccess.bind(options),
    onFailed: onFailed?.bind(options),
    onReversed: onReversed?.bind(options),
    onOther: onOther?.bind(options),
    // Without a `service`, C is its default, TransferCallback.
    service: service as ResolvedOptions<CallbackOf<C>>['service'],
    confirm: resolveConfirm(service, options)?.bind(options) as Confirm<CallbackOf<C>> | undefined,
    onOutcome: onOutcome?.bind(options) as ResolvedOptions['onOutcome'],
    logger: toLogger(logger),
    ...resolveTimes(options),
  };
}

// These functions read the receiver's options about its service. Each throws INVALID_ARGUMENT.

/** Returns the service whose callbacks the receiver reads. */
function resolveService(options: { readonly service?: PayoutService }): PayoutService {
  // A service that is not found by its name, or that a circular import has not made yet, is not left out: the
  // documented service has no verifier.
  if (!('service' in options)) return documentedService;
  const { service } = options;
  if (hasMethods(service, 'readCallback') && hasMethods(service.meanings, 'has')) {
    if ('verify' in service) requireVerifiers(service.verify);
    return service;
  }
  const expected = 'made by `transferService` or `defineService`, or left out for the documented service';
  throw invalidArgument('service', expected, service, 'service: defineService({ read, states })');
}

/** A missing handler would lose money, and a handler that is never called is a mistake about the service. */
function requireOtherHandlers({ meanings }: PayoutService, options: Partial<Record<OtherHandlerName, unknown>>): void {
  for (const [meaning, name] of otherHandlers) {
    if (meanings.has(meaning)) requireFunction(name, options[name], unwritten);
    else if (options[name] !== undefined) {
      throw invalidArgument(name, `left out, because no state of the service is ${meaning}`, options[name]);
    }
  }
}

const otherHandlers = [
  ['FAILED', 'onFailed'],
  ['REVERSED', 'onReversed'],
  ['OTHER', 'onOther'],
] as const;

type OtherHandlerName = (typeof otherHandlers)[number][1];

/** Checks what a receiver needs beside `onReversed`. */
function requireForReversals(store: CallbackStore<unknown>, retentionMs: unknown): void {
  const { transactional, claimsBoth } = store;
  if (transactional === true && claimsBoth !== true) {
    const expected =
      'a store whose claims may have both records beside `onReversed`: a `claim` that takes `record`, and `claimsBoth: true`';
    throw invalidArgument('store', expected, store, 'store: pgStore(pool)');
  }
  const example = 'retentionMs: 60 * 86_400_000';
  if (retentionMs === undefined) {
    const expected = 'given beside `onReversed`: longer than the service takes to reverse a transfer';
    throw invalidArgument('retentionMs', expected, retentionMs, example);
  }
  // In seconds by mistake, it would let a copy run a handler again after an hour or two.
  if (typeof retentionMs === 'number' && retentionMs < dayMs) {
    const expected = `at least ${dayMs} beside \`onReversed\`, which is a day in milliseconds`;
    throw invalidArgument('retentionMs', expected, retentionMs, example);
  }
}

const dayMs = 86_400_000;

/** The code that an error proposes for a handler. People paste it, and an empty one would acknowledge each callback. */
const unwritten = "async ({ data }) => { throw new Error('Not written yet') }";

/** Returns the function that confirms a callback, if there is one. */
function resolveConfirm(
  { makeConfirm }: PayoutService,
  options: { readonly confirm?: unknown },
): ((...given: never) => unknown) | undefined {
  const { confirm } = options;
  if (!('confirm' in options) || confirm === false) return undefined;
  if (typeof confirm === 'function') return confirm as (...given: never) => unknown;
  if (confirm !== true && (typeof confirm !== 'object' || confirm === null)) {
    const expected = 'true, false, { concurrency, timeoutMs } or a function';
    throw invalidArgument('confirm', expected, confirm, confirm === undefined ? 'confirm: isLive' : 'confirm: true');
  }
  if (makeConfirm !== undefined) return makeConfirm(confirm === true ? undefined : confirm);
  const expected = 'a function, because the `service` has neither keys nor a `query` to be asked by';
  throw invalidArgument('confirm', expected, confirm);
}
