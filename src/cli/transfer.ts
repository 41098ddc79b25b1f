import type { Transaction } from '../client.js';

/** What a transfer is known by. The rest may be personal, such as a wallet number. */
const shownFields = ['id', 'externalId', 'status', 'amount', 'currency', 'paymentMethod', 'provider', 'timestamp'];

/** The fields of a transfer that may be printed. */
export function toShown(transaction: Transaction): Record<string, unknown> {
  return Object.fromEntries(shownFields.map((name) => [name, transaction[name]]));
}

/** What is paid out and how, in one line. Only ids and status are sure to be there (service §4.2). */
export function describePayout({ amount, currency, paymentMethod, provider }: Transaction): string {
  const isShown = (part: unknown): part is string | number => typeof part === 'string' || typeof part === 'number';
  const money = [amount, currency].filter(isShown).join(' ');
  return [money, paymentMethod, provider].filter(isShown).join('  ').trim();
}
