import { hasMethods, invalidArgument, onlyKnownOptions, requireFunction } from '../lib/checks.js';
import { toLogger, type SafeLogger } from '../lib/logger.js';
import type { CallbackOf, EventShape } from './callback.js';
import type { Confirm, OnFailed, OtherHandlers, ReceiverOptions, ResolvedOptions } from './options.js';
import { requireOtherHandlers, resolveConfirm, resolveService, unwritten } from './service-options.js';
import { receiverDefaults, resolveTimes } from './times.js';

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
  const { onFailed, onReversed, onOther } = options as Partial<OtherHandlers<Tx> & OnFailed<CallbackOf<C>, Tx>>;
  if (!hasMethods(store, 'claim')) {
    const expected = 'a store, such as pgStore(pool), redisStore(client), or memoryStore() in a test';
    const [, example] = clients.find(([method]) => hasMethods(store, method)) ?? [];
    throw invalidArgument('store', expected, store, `store: ${example ?? 'pgStore(pool)'}`);
  }
  requireFunction('onSuccess', onSuccess, unwritten);
  const service = resolveService(options);
  requireOtherHandlers(service, { onFailed, onReversed, onOther, store, retentionMs: options.retentionMs });
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
    service,
    confirm: resolveConfirm(service, options)?.bind(options) as Confirm<CallbackOf<C>> | undefined,
    onOutcome: onOutcome?.bind(options) as ResolvedOptions['onOutcome'],
    logger: toLogger(logger),
    ...resolveTimes(options),
  };
}
