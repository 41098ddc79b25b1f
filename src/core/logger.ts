import type { Issue } from './outcome.js';

/** pino's shape: any logger that takes an object and then a message. */
export interface Logger {
  warn(details: object, message: string): unknown;
  error(details: object, message: string): unknown;
}

/**
 * Returns the logger that the receiver uses. Of an `err` it passes on name, message, code and stack only: other
 * properties of an error may carry what a handler was working on, such as a request body with a phone number.
 */
export function toLogger(logger: Logger | false | undefined): Logger {
  if (logger === false) return { warn: () => undefined, error: () => undefined };
  const target = logger === undefined || logger === (console as Logger) ? consoleLogger : logger;
  const log = (level: 'warn' | 'error') => (details: object, message: string) => {
    try {
      const logged: unknown = target[level](describe(details), message);
      // A logger may be async: a rejection must not end the process.
      if (logged instanceof Promise) logged.catch(() => undefined);
    } catch {
      // A logger that fails must not fail a delivery, and there is nowhere left to report it.
    }
  };
  return { warn: log('warn'), error: log('error') };
}

function describe(details: object): object {
  return 'err' in details ? { ...details, err: describeError(details.err) } : { ...details };
}

function describeError(error: unknown): object {
  if (typeof error === 'string') return { message: error };
  if (typeof error !== 'object' || error === null) return { message: `Not an error: ${typeof error}` };
  const { name, message, code, stack } = error as Record<string, unknown>;
  return { ...(isCode(code) ? { code } : {}), ...strings({ name, message, stack }) };
}

function isCode(code: unknown): boolean {
  return typeof code === 'string' || typeof code === 'number';
}

function strings(fields: Record<string, unknown>): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => typeof value === 'string'));
}

/* eslint-disable no-console -- the default logger is the console. */
const consoleLogger: Logger = {
  warn: (details, message) => {
    console.warn(...toConsole(details, message));
  },
  error: (details, message) => {
    console.error(...toConsole(details, message));
  },
};
/* eslint-enable no-console */

/** The message first, and no empty object behind it. Joins the paths of issues: the console prints them as `[Array]`. */
function toConsole(details: { issues?: readonly Issue[] }, message: string): unknown[] {
  if (Object.keys(details).length === 0) return [message];
  if (details.issues === undefined) return [message, details];
  const issues = details.issues.map((issue) => `${issue.path.map(String).join('.') || 'body'}: ${issue.message}`);
  return [message, { ...details, issues }];
}
