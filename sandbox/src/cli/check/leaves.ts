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
