import { createHash, randomBytes, randomUUID } from 'node:crypto';
import type { Names } from './named-services.js';

/** So many characters of a fresh value are random: test databases are kept, and two ids must not be equal. */
const leastRandom = 12;

const uuid = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;

/** Returns random whole numbers below `limit`, always the same ones for the same seed. */
type Random = (limit: number) => number;

/** Without a seed the numbers are new each time. */
function randomFrom(seed: string | undefined): Random {
  const key = seed ?? randomBytes(16);
  let round = 0;
  return (limit) => {
    round += 1;
    return createHash('sha256').update(key).update(String(round)).digest().readUIntBE(0, 6) % limit;
  };
}

/** Returns another value in the form of `old`: a number, digits, a UUID, or letters and digits after a prefix. */
export function toFresh(old: unknown, seed?: string): string {
  const random = randomFrom(seed);
  if (typeof old === 'number') return toDigits(15, random);
  const text = String(old);
  if (uuid.test(text)) return toUuid(random);
  if (/^\d+$/.test(text)) return toDigits(Math.max(text.length, leastRandom), random);
  const prefix = /^[A-Za-z]+[_|:-]/.exec(text)?.[0] ?? '';
  const changed = text.slice(prefix.length).replaceAll(/[A-Za-z\d]/g, (character) => toLike(character, random));
  const missing = leastRandom - changed.replaceAll(/[^A-Za-z\d]/g, '').length;
  const last = /[A-Za-z\d](?=[^A-Za-z\d]*$)/.exec(changed)?.[0] ?? '7';
  return prefix + changed + Array.from({ length: Math.max(missing, 0) }, () => toLike(last, random)).join('');
}

/** Returns a value of the same form if an app may demand it: a number, digits or a UUID. */
export function toFixedForm(value: unknown): string | undefined {
  return typeof value === 'number' || /^\d+$/.test(String(value)) || uuid.test(String(value))
    ? toFresh(value)
    : undefined;
}

/** A number of 15 digits is a safe one. */
function toDigits(length: number, random: Random): string {
  return Array.from({ length }, () => String(1 + random(9))).join('');
}

function toUuid(random: Random): string {
  const hex = Array.from({ length: 32 }, () => random(16).toString(16)).join('');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20)}`;
}

const alphabets = ['0123456789', 'abcdefghijklmnopqrstuvwxyz', 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'];

function toLike(character: string, random: Random): string {
  const alphabet = alphabets.find((each) => each.includes(character)) ?? character;
  return alphabet[random(alphabet.length)] ?? character;
}

/** Returns the headers that name an event, which its copies share, and a transfer. */
export function toNameHeaders(
  { event, transfer }: Names,
  body: string,
  externalId: string,
): Readonly<Record<string, string>> {
  const toHeader = (name: string, seed: string): [string, string][] => {
    const [, header] = /^header:(.+)$/.exec(name) ?? [];
    return header === undefined ? [] : [[header.toLowerCase(), toFresh(randomUUID(), seed)]];
  };
  const named = [...event.map((name) => toHeader(name, body)), ...transfer.map((name) => toHeader(name, externalId))];
  return Object.fromEntries(named.flat());
}
