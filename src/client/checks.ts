import { hasMethods, invalidArgument, requireFunction } from '../lib/checks.js';

// What several functions of the client take. Each check throws INVALID_ARGUMENT.

export function requireClient(client: unknown): void {
  if (hasMethods(client, 'getTransaction')) {
    const { toCallback } = client as { toCallback?: unknown };
    if (toCallback !== undefined)
      requireFunction('client.toCallback', toCallback, '(transaction) => ({ event, data })');
    return;
  }
  throw invalidArgument('client', 'a client', client, 'client: transferClient({ baseUrl, apiKey, apiSecret })');
}

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
  const example = `${option}: ${hasMethods(value, 'then') ? 'await ' : ''}openPayouts()`;
  throw invalidArgument(option, 'an iterable or an async iterable', value, example);
}
