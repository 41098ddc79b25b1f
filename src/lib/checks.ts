import { didYouMean } from './text.js';
import { TransferCallbackError } from './errors.js';

/** The longest delay of a Node timer, in milliseconds. A timer with a longer delay fires immediately. */
export const maxTimerMs = 2_147_483_647;

/**
 * Returns the error for an invalid argument. Names the option, what was expected, what was given as `describeGiven`,
 * and the code to write, if there is an `example`.
 */
export function invalidArgument(option: string, expected: string, value: unknown, example = ''): TransferCallbackError {
  return unexpected(option, expected, describeGiven(value), example);
}

/** Returns the error for an option that is a secret. Describes the kind of the value, never its content. */
export function invalidSecret(option: string, expected: string, value: unknown, example = ''): TransferCallbackError {
  const got =
    typeof value === 'string' ? describeLength(value) : typeof value === 'number' ? 'a number' : describeGiven(value);
  return unexpected(option, expected, got, example);
}

/**
 * Returns the error for a secret, which mostly comes from an environment variable. If nothing or a string was given,
 * the variable is wrong and not the code. The error then names no code to write, and for a wrong string the `remedy`.
 */
export function invalidVariable(
  option: string,
  expected: string,
  value: unknown,
  example: string,
  remedy = correctVariable,
): TransferCallbackError {
  if (value === undefined) return unexpected(option, expected, 'undefined', '', isVariableSet);
  if (value === '') return unexpected(option, expected, 'an empty string', '', isVariableSet);
  if (typeof value !== 'string') return invalidSecret(option, expected, value, example);
  return unexpected(option, expected, describeLength(value), '', ` ${remedy}`);
}

export const correctVariable = 'Correct its environment variable.';
const isVariableSet = ' Is its environment variable set?';

function unexpected(option: string, expected: string, got: string, example: string, hint = ''): TransferCallbackError {
  const advice = example === '' ? hint : ` Write \`${example}\`.`;
  return new TransferCallbackError(
    'INVALID_ARGUMENT',
    `Expected \`${option}\` to be ${expected}, got ${got}.${advice}`,
    undefined,
    { option, expected, got, ...(example !== '' && { write: example }) },
  );
}

/** Returns the error for a promise of a function that must be synchronous. `message` names the function. */
export function notSynchronous(promise: Promise<unknown>, message: string): TransferCallbackError {
  // This promise is not awaited: an unhandled rejection would end the process.
  promise.catch(() => undefined);
  return new TransferCallbackError('INVALID_ARGUMENT', message);
}

/**
 * Returns `value` if it is a whole number in the range, and throws INVALID_ARGUMENT otherwise. The error proposes the
 * number in the range that is nearest to `example`.
 */
export function wholeNumber(
  option: string,
  value: unknown,
  { min, max = maxTimerMs, example }: { min: number; max?: number | undefined; example?: number },
): number {
  const number = Number.isInteger(value) ? (value as number) : NaN;
  if (number >= min && number <= max) return number;
  const proposal = example === undefined ? '' : `${option}: ${Math.min(Math.max(example, min), max)}`;
  throw invalidArgument(option, `a whole number from ${min} to ${max}`, value, proposal);
}

export function requireBoolean(option: string, value: unknown): void {
  if (typeof value !== 'boolean') throw invalidArgument(option, 'true or false', value, `${option}: true`);
}

export function requireFunction(option: string, value: unknown, example: string): void {
  if (typeof value !== 'function') throw invalidArgument(option, 'a function', value, `${option}: ${example}`);
}

export function hasMethods(value: unknown, ...names: readonly string[]): boolean {
  const known = (value ?? {}) as Readonly<Record<string, unknown>>;
  return names.every((name) => typeof known[name] === 'function');
}

/**
 * Throws INVALID_ARGUMENT if `options` is not an object with options, or has a key that is not one of `known`.
 * `findPlace` returns a sentence about an option that belongs elsewhere.
 */
export function onlyKnownOptions(
  options: unknown,
  known: readonly string[],
  { findPlace = () => undefined, example }: { findPlace?: (name: string) => string | undefined; example?: string } = {},
): void {
  if (!mayHaveOptions(options, known)) throw invalidArgument('options', 'an object', options, example);
  const name = Object.keys(options).find((each) => !known.includes(each));
  if (name === undefined) return;
  throw new TransferCallbackError('INVALID_ARGUMENT', `Unknown option ${describeUnknown(name, known, findPlace)}`);
}

/**
 * Whether a value may have options. An array, a promise that was not awaited and an AbortSignal have no keys, and
 * would pass for `{}`. An instance of a class may have its options as methods.
 */
function mayHaveOptions(value: unknown, known: readonly string[]): value is object {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const prototype = Object.getPrototypeOf(value) as object | null;
  const isLiteral = prototype === null || Object.getPrototypeOf(prototype) === null;
  return isLiteral || known.some((name) => name in value);
}

function describeUnknown(
  name: string,
  known: readonly string[],
  findPlace: (name: string) => string | undefined,
): string {
  const list = `; known are ${known.join(', ')}.`;
  // A connection string may have been spread into the options.
  if (!/^[\w$]{1,40}$/.test(name)) return `with a name of ${name.length} characters${list}`;
  const meant = didYouMean(name, known);
  const advice = findPlace(name) ?? (meant !== undefined && `Did you mean \`${meant}\`?`);
  return advice === false ? `\`${name}\`${list}` : `\`${name}\`. ${advice}`;
}

/**
 * Words, numbers and IPv4 addresses. A connection string has one of `:`, `@` and `=`. A generated password or an API
 * key is mostly longer.
 */
const harmless = /^[\w ./-]{0,19}$/;

/**
 * Describes a value for an error message: by its kind, and by its content if that is certainly no secret. A caller may
 * pass a URL with a password to any option.
 */
export function describeGiven(value: unknown): string {
  if (typeof value === 'string') return harmless.test(value) ? `"${value}"` : describeLength(value);
  if (Array.isArray(value)) return 'an array';
  if (value instanceof Promise) return 'a promise that was not awaited';
  if (typeof value === 'object' && value !== null) return 'an object';
  return typeof value === 'function' || typeof value === 'symbol' ? `a ${typeof value}` : String(value);
}

/** Describes what a store has replied with, by its `state` if it has one. */
export function describeState(reply: unknown): string {
  const { state } = (reply ?? {}) as { state?: unknown };
  return state === undefined ? describeGiven(reply) : `the state ${describeGiven(state)}`;
}

function describeLength(text: string): string {
  return `a string of ${text.length} characters`;
}
