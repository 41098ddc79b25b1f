/** The way to a value that is no object or array, in a parsed payload. */
export type Leaf = readonly string[];

/** Returns the ways to all values of a payload. */
export function listLeaves(value: unknown, leaf: Leaf = []): Leaf[] {
  if (typeof value !== 'object' || value === null) return [leaf];
  return Object.entries(value).flatMap(([key, child]) => listLeaves(child, [...leaf, key]));
}

export function getLeaf(payload: unknown, leaf: Leaf): unknown {
  return leaf.reduce<unknown>((at, key) => (at as Record<string, unknown>)[key], payload);
}

/** Returns a copy of the payload with another value there. `undefined` leaves the member out. */
export function setLeaf(payload: unknown, [key, ...rest]: Leaf, value: unknown): unknown {
  if (key === undefined) return value;
  const inner = setLeaf((payload as Record<string, unknown>)[key], rest, value);
  if (Array.isArray(payload)) return payload.map((each: unknown, index) => (String(index) === key ? inner : each));
  const others = Object.entries(payload as object).map(([name, own]) => [name, name === key ? inner : own] as const);
  return Object.fromEntries(others.filter(([, own]) => own !== undefined));
}

export function nameLeaf(leaf: Leaf): string {
  return leaf.join('.') || 'the whole body';
}
