import { TransferCallbackError } from './errors.js';

/** The longest delay of a Node timer, in milliseconds. A timer with a longer delay fires immediately. */
export const maxTimerMs = 2_147_483_647;

/** Returns the error for an invalid argument. Names the option, what was expected and what was given. */
export function invalidArgument(option: string, wish: string, value: unknown): TransferCallbackError {
  return new TransferCallbackError('INVALID_ARGUMENT', `Expected \`${option}\` to be ${wish}, got ${shown(value)}.`);
}

/** Returns the error for a value that may be a secret. Describes its kind, never its content. */
export function invalidSecret(option: string, wish: string, value: unknown): TransferCallbackError {
  const got =
    typeof value === 'string'
      ? `a string of ${value.length} characters`
      : typeof value === 'number'
        ? 'a number'
        : shown(value);
  return new TransferCallbackError('INVALID_ARGUMENT', `Expected \`${option}\` to be ${wish}, got ${got}.`);
}

/** Returns `value` if it is a whole number from `min` to `max`, and throws INVALID_ARGUMENT otherwise. */
export function wholeNumber(option: string, value: unknown, min: number, max = maxTimerMs): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return value;
  throw invalidArgument(option, `a whole number from ${min} to ${max}`, value);
}

/** Throws INVALID_ARGUMENT if `options` is not an object or has a key that is not one of `known`. */
export function onlyKnownOptions(options: unknown, known: readonly string[]): void {
  if (typeof options !== 'object' || options === null) throw invalidArgument('options', 'an object', options);
  for (const name of Object.keys(options)) {
    if (known.includes(name)) continue;
    throw new TransferCallbackError('INVALID_ARGUMENT', `Unknown option \`${name}\`; known are ${known.join(', ')}.`);
  }
}

function shown(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value);
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'object' && value !== null) return 'an object';
  return typeof value === 'function' ? 'a function' : String(value);
}
