import { hasMethods, invalidArgument, invalidSecret } from '../lib/checks.js';

// What several functions of the client take. Each check throws INVALID_ARGUMENT.

export function requireId(id: unknown): void {
  if (typeof id === 'string' && id !== '') return;
  const isNumeric = typeof id === 'number' || typeof id === 'bigint';
  const example = isNumeric ? 'id: String(id)' : "id: 'payout-8841'";
  throw invalidArgument('id', 'the id or externalId of a transfer', id, example);
}

/** `method` is the one that is called. */
export function requireReceiver(receiver: unknown, method: 'receive' | 'inspect'): void {
  if (hasMethods(receiver, method)) return;
  throw invalidArgument('receiver', 'a receiver', receiver, 'receiver: transferCallbackReceiver(options)');
}

/** An AbortController in place of its signal would never abort. */
export function requireSignal(signal: unknown): void {
  if (signal === undefined || hasMethods(signal, 'addEventListener')) return;
  throw invalidArgument('signal', 'an AbortSignal', signal, 'signal: AbortSignal.timeout(60_000)');
}

export function requireIterable(option: string, value: unknown): void {
  const isIterable =
    typeof value === 'object' && value !== null && (Symbol.asyncIterator in value || Symbol.iterator in value);
  if (isIterable) return;
  const call = option === 'paid' ? 'paidPayouts()' : 'openPayouts()';
  const example = `${option}: ${hasMethods(value, 'then') ? 'await ' : ''}${call}`;
  throw invalidArgument(option, 'an iterable or an async iterable', value, example);
}

/** Returns the URL if it is http or https, and without credentials. */
export function parseHttpUrl(text: string): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isPlain = url !== undefined && ['http:', 'https:'].includes(url.protocol) && url.username + url.password === '';
  return isPlain ? url : undefined;
}

/** Returns the URL without a slash at its end. Throws INVALID_ARGUMENT. */
export function requireBaseUrl(given: unknown): string {
  const url = parseHttpUrl(String(given));
  if (url !== undefined && !/[?#]/.test(url.href)) return url.href.replace(/\/+$/, '');
  // Not shown, because it may hold a password.
  const expected = 'an http or https URL without credentials, query or fragment';
  throw invalidSecret('baseUrl', expected, given, "baseUrl: 'https://service.example/api'");
}
