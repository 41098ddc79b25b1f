import { invalidArgument } from './checks.js';

/**
 * Any logger whose methods take an object and then a message, as pino's do.
 *
 * @example
 * const logger: Logger = {
 *   warn: (details, message) => console.warn(message, details),
 *   error: (details, message) => console.error(message, details),
 * };
 */
export interface Logger {
  /** Gets the lines of `processed` and `duplicate`, which are not logged without it. */
  info?(details: object, message: string): unknown;
  warn(details: object, message: string): unknown;
  error(details: object, message: string): unknown;
}

/** The logger that the receiver uses. A logger that throws or rejects does not fail the delivery. */
export interface SafeLogger extends Logger {
  /** Writes a warning. Rejects if it cannot be written, or if there is no logger. */
  warnOrReject(details: object, message: string): Promise<void>;
}

/**
 * Returns the logger that the receiver uses. It passes on only the name, message, code and stack of an `err`: other
 * properties of an error may carry what a handler was working on, such as a request body with a phone number.
 */
export function toLogger(logger: Logger | false | undefined): SafeLogger {
  if (logger === false) return silent;
  const target = logger === undefined || logger === (console as Logger) ? consoleLogger : logger;
  const log = (level: 'info' | 'warn' | 'error') => (details: object, message: string) => {
    const written = new Promise((resolve) => {
      resolve((target as Required<Logger>)[level](describe(details), message));
    });
    // A logger that throws or rejects must not fail a delivery, and there is no other place to report it.
    written.catch(() => undefined);
  };
  return {
    ...(typeof target.info === 'function' ? { info: log('info') } : {}),
    warn: log('warn'),
    error: log('error'),
    async warnOrReject(details, message) {
      await target.warn(describe(details), message);
    },
  };
}

const silent: SafeLogger = {
  warn: () => undefined,
  error: () => undefined,
  warnOrReject: () => Promise.reject(invalidArgument('logger', 'a logger, because `forget` must leave a trace', false)),
};

function describe(details: object): object {
  return 'err' in details ? { ...details, err: describeError(details.err) } : { ...details };
}

function describeError(error: unknown): object {
  if (typeof error === 'string') return { message: error };
  if (typeof error !== 'object' || error === null) return { message: `Not an error: ${typeof error}` };
  const err: Record<string, unknown> = {};
  for (const field of ['code', 'name', 'message', 'stack']) {
    const value = readField(error, field);
    if (typeof value === 'string' || (field === 'code' && typeof value === 'number')) err[field] = value;
  }
  // pino would take `Object`, the name of the constructor, for the type of the error. Without a constructor it takes
  // `name`.
  return Object.defineProperty(err, 'constructor', { value: undefined });
}

/**
 * Reads a field of a thrown value. A getter may throw, and a revoked Proxy does, but the line must still be written.
 */
function readField(error: object, field: string): unknown {
  try {
    return Reflect.get(error, field);
  } catch {
    return `Reading \`${field}\` throws.`;
  }
}

/* eslint-disable no-console -- the default logger is the console. */
/** The default logger. It has no `info`, because a line per successful delivery would flood a console. */
const consoleLogger: Logger = {
  warn: (details, message) => {
    console.warn(...toConsole(details, message));
  },
  error: (details, message) => {
    console.error(...toConsole(details, message));
  },
};
/* eslint-enable no-console */

/** Puts the message first, and omits an empty object. Joins issue paths: the console prints them as `[Array]`. */
function toConsole(
  details: { issues?: readonly { path: readonly PropertyKey[]; message: string }[] },
  message: string,
): unknown[] {
  if (Object.keys(details).length === 0) return [message];
  if (details.issues === undefined) return [message, details];
  const issues = details.issues.map((issue) => `${issue.path.map(String).join('.') || 'body'}: ${issue.message}`);
  return [message, { ...details, issues }];
}
