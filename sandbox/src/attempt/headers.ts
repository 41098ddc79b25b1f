import { invalidArgument, invalidSecret } from '../../../src/lib/checks.js';

/** The headers that each attempt sets itself, and Transfer-Encoding, which would contradict Content-Length. */
const ownHeaders = ['Host', 'Connection', 'Content-Type', 'Content-Length', 'Transfer-Encoding'];
const ownNames = new Set(ownHeaders.map((name) => name.toLowerCase()));

/** Headers for each attempt, or a function that makes them from the bytes of its body, such as a signature. */
export type AttemptHeaders = Readonly<Record<string, string>> | ((body: Buffer) => Readonly<Record<string, string>>);

/** Checks headers, unless a function makes them later. Throws INVALID_ARGUMENT. */
export function requireAttemptHeaders(headers: unknown, option: string): asserts headers is AttemptHeaders {
  if (typeof headers !== 'function') requireHeaders(headers, option);
}

/**
 * Returns the headers of an attempt with this body. Throws INVALID_ARGUMENT, and what a function of the caller throws.
 */
export function toHeaders(headers: AttemptHeaders, body: Buffer): Readonly<Record<string, string>> {
  if (typeof headers !== 'function') return headers;
  const made: unknown = headers(body);
  requireHeaders(made, 'what the function of the headers returns');
  return made;
}

/**
 * Checks headers that a caller adds to each attempt: strings, and none of those that an attempt sets itself. Throws
 * INVALID_ARGUMENT. A value may be a secret, so the error does not show it.
 */
export function requireHeaders(
  headers: unknown,
  option = 'headers',
): asserts headers is Readonly<Record<string, string>> {
  // The entries of a `Headers` or a `Map` are not properties: they would silently be left out.
  if (typeof headers !== 'object' || headers === null || Symbol.iterator in headers) {
    throw invalidArgument(
      option,
      'an object of names and values',
      headers,
      `${option}: { 'x-callback-token': 'secret' }`,
    );
  }
  for (const [name, value] of Object.entries(headers as Record<string, unknown>)) {
    if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name)) throw invalidArgument(option, 'named as HTTP allows', name);
    if (ownNames.has(name.toLowerCase())) {
      throw invalidArgument(option, `without ${ownHeaders.join(', ')}, which the delivery sets`, name);
    }
    if (typeof value !== 'string' || !/^[\t\x20-\x7e\x80-\xff]*$/.test(value)) {
      throw invalidSecret(`${option}.${name}`, 'a string that a header can carry', value);
    }
  }
}
