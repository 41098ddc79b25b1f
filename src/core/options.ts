import type { z } from 'zod';
import { transferCallbackSchema, type CallbackShape, type Given, type TransferCallback } from './callback.js';
import { invalidOption, maxTimerMs, onlyKnownOptions, wholeNumber } from './errors.js';
import type { Issue, TransferCallbackOutcome } from './outcome.js';
import type { CallbackStore } from './store.js';

/** What a handler is told beside the callback. */
export interface HandlerContext<Tx = undefined> {
  /**
   * Aborts when the handler's deadline has passed, its lease was lost, or the receiver closes. JavaScript cannot
   * stop the handler: pass the signal on to whatever can be cancelled.
   */
  signal: AbortSignal;
  /** Who brought the callback, as given to `receive`; `http` at the edge. */
  source: string;
  /** The open transaction of a transactional store; `undefined` for the others. */
  tx: Tx;
}

/** pino's shape: any logger that takes an object and then a message. */
export interface Logger {
  warn(details: object, message: string): void;
  error(details: object, message: string): void;
}

export interface ReceiverOptions<C extends CallbackShape = TransferCallback, Tx = undefined> {
  /** Where claims are kept: `redisStore(client)`, `memoryStore()` or your own. */
  store: CallbackStore<Tx>;
  /** Called for a transfer that has succeeded, awaited; when it throws, the service sends the callback again. */
  onSuccess: (callback: Extract<Given<C>, { event: 'transfer.success' }>, context: HandlerContext<Tx>) => unknown;
  /** Called for a transfer that has failed, awaited; when it throws, the service sends the callback again. */
  onFailed: (callback: Extract<Given<C>, { event: 'transfer.failed' }>, context: HandlerContext<Tx>) => unknown;
  /**
   * Establishes that the callback is true, inside the claim and before the handler, for example by reading the
   * transfer back. Answers the callback that the handler is to see, with the same id and facts; anything else, or a
   * throw, is `unconfirmed`. It shares `handlerTimeoutMs` with the handler.
   */
  confirm?:
    | ((callback: Given<C>, context: { signal: AbortSignal }) => Given<C> | undefined | Promise<Given<C> | undefined>)
    | undefined;
  /** In place of the documented schema, for the day the service changes a field. Must be synchronous. */
  schema?: z.ZodType<C> | undefined;
  /** How long a delivery waits for another one that holds the claim, in milliseconds. Default 10 000. */
  inFlightWaitMs?: number | undefined;
  /**
   * How long a claim outlives a process that died with it, in milliseconds. Default 15 000; under 30 000, so that
   * the service's first retry (service §6.3) finds it free.
   */
  leaseMs?: number | undefined;
  /** When a delivery stops waiting for its handler and answers 503, in milliseconds. Default 20 000. */
  handlerTimeoutMs?: number | undefined;
  /** How long any one call of the store may take, in milliseconds. Default 2 000; under a third of `leaseMs`. */
  storeTimeoutMs?: number | undefined;
  /**
   * How long a settled callback is remembered, in milliseconds. Default 7 days; over 90 000, the soonest that the
   * service's fourth attempt can come after the first (service §6.3).
   */
  retentionMs?: number | undefined;
  /** Told of every delivery once, when it has ended. Not awaited; what it throws is logged. */
  onOutcome?: ((outcome: TransferCallbackOutcome) => unknown) | undefined;
  /** Default `console`, for warnings and errors; `false` for none. */
  logger?: Logger | false | undefined;
}

/** The options as they apply: checked, and with the defaults filled in. */
export type ResolvedOptions<C extends CallbackShape, Tx> = ReceiverOptions<C, Tx> &
  Record<keyof typeof receiverDefaults, number> & { schema: z.ZodType<C>; logger: Logger };

/** The default of every option in milliseconds. */
export const receiverDefaults = {
  inFlightWaitMs: 10_000,
  leaseMs: 15_000,
  handlerTimeoutMs: 20_000,
  storeTimeoutMs: 2_000,
  retentionMs: 604_800_000,
};

/** How often a lease is renewed within its length. */
export const renewalsPerLease = 3;

/** For how many handler deadlines a lease is renewed at most, for a handler that is late but alive. */
export const deadlinesHeld = 6;

/** The service's first retry comes after about this, each later one after more (service §6.3). */
const firstRetryMs = 30_000;

/** The fourth attempt comes after three such pauses, or longer ones: a shorter memory would take it for a first. */
export const leastRetentionMs = 3 * firstRetryMs + 1;

export const receiverOptionNames = [
  'store',
  'onSuccess',
  'onFailed',
  'confirm',
  'schema',
  'onOutcome',
  'logger',
  ...Object.keys(receiverDefaults),
];

/** Checks the options and fills in the defaults; throws INVALID_OPTION at the first that does not fit. */
export function resolveReceiverOptions<C extends CallbackShape, Tx>(
  options: ReceiverOptions<C, Tx>,
): ResolvedOptions<C, Tx> {
  onlyKnownOptions(options, receiverOptionNames);
  requireMethods(
    'store',
    options.store,
    ['claim'],
    'a store, such as memoryStore(), redisStore(client) or postgresStore(pool)',
  );
  for (const name of ['onSuccess', 'onFailed'] as const) requireFunction(name, options[name]);
  for (const name of ['confirm', 'onOutcome'] as const) {
    if (options[name] !== undefined) requireFunction(name, options[name]);
  }
  const {
    // Without a schema of the user's, C is its default, TransferCallback.
    schema = transferCallbackSchema as unknown as z.ZodType<C>,
    logger = consoleLogger,
    inFlightWaitMs = receiverDefaults.inFlightWaitMs,
    leaseMs = receiverDefaults.leaseMs,
    handlerTimeoutMs = receiverDefaults.handlerTimeoutMs,
    storeTimeoutMs = receiverDefaults.storeTimeoutMs,
    retentionMs = receiverDefaults.retentionMs,
  } = options;
  requireMethods('schema', schema, ['safeParse'], 'a zod schema');
  if (logger !== false) requireMethods('logger', logger, ['warn', 'error'], 'false or an object with warn and error');

  wholeNumber('inFlightWaitMs', inFlightWaitMs, 0);
  // Below three store deadlines one slow renewal would lose the lease; from 30 s on, a crash would outlast the
  // service's first retry.
  wholeNumber('storeTimeoutMs', storeTimeoutMs, 1, Math.floor(firstRetryMs / renewalsPerLease) - 1);
  wholeNumber('leaseMs', leaseMs, renewalsPerLease * storeTimeoutMs + 1, firstRetryMs - 1);
  wholeNumber('handlerTimeoutMs', handlerTimeoutMs, 1, Math.floor(maxTimerMs / deadlinesHeld));
  wholeNumber('retentionMs', retentionMs, leastRetentionMs, Number.MAX_SAFE_INTEGER);
  return {
    ...options,
    schema,
    logger: logger === false ? silentLogger : safeLogger(logger),
    inFlightWaitMs,
    leaseMs,
    handlerTimeoutMs,
    storeTimeoutMs,
    retentionMs,
  };
}

function requireFunction(option: string, value: unknown): void {
  if (typeof value !== 'function') throw invalidOption(option, 'a function', value);
}

function requireMethods(option: string, value: unknown, methods: readonly string[], wish: string): void {
  if (typeof value === 'object' && value !== null) {
    const known = value as Record<string, unknown>;
    if (methods.every((method) => typeof known[method] === 'function')) return;
  }
  throw invalidOption(option, wish, value);
}

/** A logger that fails must not fail a delivery, and there is nowhere left to report it. */
function safeLogger(logger: Logger): Logger {
  const safely = (level: 'warn' | 'error') => (details: object, message: string) => {
    try {
      logger[level](details, message);
    } catch {
      // See above.
    }
  };
  return { warn: safely('warn'), error: safely('error') };
}

/* eslint-disable no-console -- the default logger is the console. */
const consoleLogger: Logger = {
  warn: (details, message) => {
    console.warn(message, legible(details));
  },
  error: (details, message) => {
    console.error(message, legible(details));
  },
};
/* eslint-enable no-console */

/** The console shows an issue's path as `[Array]`. */
function legible(details: { issues?: readonly Issue[] }): object {
  if (details.issues === undefined) return details;
  return { ...details, issues: details.issues.map(({ path, message }) => `${path.map(String).join('.')}: ${message}`) };
}

const silentLogger: Logger = { warn: () => undefined, error: () => undefined };
