import { parseJson } from '../../../../src/lib/text.js';

/** The way to a value of a payload that is not an object or array. `''` goes into a string that is itself JSON. */
export type Leaf = readonly string[];

const inside = '';

/** Returns the ways to all values of a payload. */
export function listLeaves(value: unknown, leaf: Leaf = []): Leaf[] {
  if (isBranch(value)) return Object.entries(value).flatMap(([key, child]) => listLeaves(child, [...leaf, key]));
  const parsed = typeof value === 'string' && /^\s*[[{]/.test(value) ? parseJson(value) : undefined;
  return isBranch(parsed) ? listLeaves(parsed, [...leaf, inside]) : [leaf];
}

export function getLeaf(payload: unknown, leaf: Leaf): unknown {
  return leaf.reduce<unknown>(
    (at, key) => (key === inside && typeof at === 'string' ? parseJson(at) : isBranch(at) ? at[key] : undefined),
    payload,
  );
}

/** Returns a copy of the payload with another value there. `undefined` leaves the member out. */
export function setLeaf(payload: unknown, [key, ...rest]: Leaf, value: unknown): unknown {
  if (key === undefined) return value;
  if (key === inside && typeof payload === 'string') return JSON.stringify(setLeaf(parseJson(payload), rest, value));
  if (!isBranch(payload)) return payload;
  const inner = setLeaf(payload[key], rest, value);
  if (Array.isArray(payload)) return payload.map((each: unknown, index) => (String(index) === key ? inner : each));
  const others = Object.entries(payload).map(([name, own]) => [name, name === key ? inner : own] as const);
  return Object.fromEntries(others.filter(([, own]) => own !== undefined));
}

export function nameLeaf(leaf: Leaf): string {
  return leaf.filter((key) => key !== inside).join('.') || 'the whole body';
}

function isBranch(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/** Returns an amount that is higher by one, written in the same way; `undefined` if `value` is not an amount. */
export function toHigher(value: unknown): unknown {
  if (typeof value === 'number') return value + 1;
  if (typeof value !== 'string' || !/^\d+(?:\.\d+)?$/.test(value)) return undefined;
  return (Number(value) + 1).toFixed(value.split('.')[1]?.length ?? 0);
}

/**
 * Returns an unknown word in the form of `word`, with what it shares with `other`: `transfer.unknown`. Returns
 * `undefined` unless both are words, and differ.
 */
export function toUnknown(word: unknown, other: unknown): string | undefined {
  const isWord = (value: unknown): value is string => typeof value === 'string' && /^[a-z][a-z_.#:/-]*$/i.test(value);
  if (!isWord(word) || !isWord(other) || word === other) return undefined;
  const unknown = word === word.toUpperCase() ? 'UNKNOWN' : 'unknown';
  const [own, others] = [word.split(/([^A-Za-z]+)/), other.split(/([^A-Za-z]+)/)];
  if (own.length !== others.length) return unknown;
  return own.map((part, index) => (part === others[index] ? part : unknown)).join('');
}

const idKey = /(?:id|ref|reference|code|uuid|utr|receipt|nonce|seq|sequence|number|key|token|lot)$/i;
/** What belongs to the merchant, a bank, a person or a code, or tells a time or an amount. */
const noIdKey =
  /account|bank|beneficiary|fund|integration|payee|profile|receiver|recipient|subscription|phone|msisdn|wallet|customer|merchant|business|user|email|currency|country|amount|fee|time|date|created|updated|[_a-z]at$|version|tax|(?:error|response|result|status|reason|short|sort|failure)_?code/i;

/** Whether a value may be what an app knows an event or a transfer by. */
export function looksLikeId(name: string, value: unknown): boolean {
  if (noIdKey.test(name) || value === '' || !['string', 'number'].includes(typeof value)) return false;
  const text = String(value);
  if (idKey.test(name)) return !/\s/.test(text);
  return /^(?=.*\d)[^\s:/]{8,}$/.test(text) && !/^\d+\.\d+$|^\d{4}-\d\d-\d\d/.test(text);
}

/** Writes JSON in another spelling: blanks after colons and commas, `\/`, `\u00e9`, and an amount with decimals. */
export function spell(payload: unknown, amount: Leaf = []): string {
  const value = getLeaf(payload, amount);
  const isWhole = Number.isInteger(value) && !amount.includes('');
  const marked = isWhole ? setLeaf(payload, amount, `\0${Number(value)}.00`) : payload;
  const toEscape = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return JSON.stringify(marked, undefined, 1)
    .replaceAll(/\n */g, ' ')
    .replaceAll(/"\\u0000([\d.]+)"/g, '$1')
    .replaceAll('/', '\\/')
    .replaceAll(/[\u0080-\uffff]/g, toEscape);
}
