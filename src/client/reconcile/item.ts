import { describeGiven } from '../../lib/checks.js';
import { TransferClientError } from '../errors.js';
import type { PendingTransfer } from './report.js';

// Reads and checks an item of `pending` or `paid`. JavaScript may give anything.

/** A list that a run takes. */
export type ListName = 'pending' | 'paid';

type Item = Partial<PendingTransfer> | null | undefined;

/** Clocks differ by less, and time zones by more. */
const clockMs = 15 * 60_000;
const dayMs = 86_400_000;

/**
 * Returns the id as a string, even if it is a numeric key, or '' if there is no id. A number above 2^53 - 1 is not an
 * id, because its last digits may be lost.
 */
export function findId(item: Item): string {
  const id: unknown = item?.id;
  if (typeof id === 'string') return id;
  return typeof id === 'bigint' || Number.isSafeInteger(id) ? String(id) : '';
}

/**
 * Returns the creation time in milliseconds since 1970, or NaN if the item is not a transfer or has no date. A cursor
 * of PostgreSQL gives -Infinity for the timestamp `-infinity`.
 */
export function findCreationMs(item: Item): number {
  return new Date(Number(item?.createdAt ?? NaN)).getTime();
}

/** Returns what is wrong with an item of a list, if it cannot be reconciled. */
export function findItemFault(item: Item, list: ListName): TransferClientError | undefined {
  const invalid = (what: string, expected: string, given: unknown): TransferClientError => {
    const message = `Expected ${what} of \`${list}\` to be ${expected}, got ${describeGiven(given)}.`;
    return new TransferClientError('INVALID_ARGUMENT', message);
  };
  if (typeof item !== 'object' || item === null) return invalid('a transfer', '`{ id, createdAt }`', item);
  if (typeof item.id !== 'string' && findId(item) === '') {
    return invalid('`id` of a transfer', `a string, or a whole number up to ${Number.MAX_SAFE_INTEGER}`, item.id);
  }
  // A date beyond a day is a mistake of units. Nothing tells how old the transfer is.
  if (findCreationMs(item) < Date.now() + dayMs) return undefined;
  const { createdAt } = item;
  const isDate = createdAt instanceof Date && !Number.isNaN(createdAt.getTime());
  const given = isDate ? createdAt.toISOString().slice(0, 10) : createdAt;
  return invalid('`createdAt` of a transfer', 'a Date or milliseconds since 1970, not in the future', given);
}

/**
 * Returns what is wrong with the date of an item without another fault, if that is in the future. The transfer must be
 * queried now: until then it would seem too young.
 */
export function findDateFault(item: Item, list: ListName): TransferClientError | undefined {
  const createdMs = findCreationMs(item);
  if (createdMs <= Date.now() + clockMs) return undefined;
  const given = `${new Date(createdMs).toISOString()}: another time zone?`;
  const message = `Expected \`createdAt\` of a transfer of \`${list}\` to be in the past, got ${given}`;
  return new TransferClientError('INVALID_ARGUMENT', message);
}
