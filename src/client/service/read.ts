import {
  amountMessage,
  finalEvents,
  idMessage,
  isCallbackId,
  isExact,
  toOtherId,
  type EventShape,
} from '../../core/callback.js';
import { toIds, type Ids, type Reading, type StateMeaning } from '../../core/payout-service.js';
import { describeGiven, notSynchronous } from '../../lib/checks.js';
import { toReason } from '../../lib/errors.js';
import { parseWith, type Issue, type StandardSchema } from '../../lib/standard-schema.js';

type Id = string | number | bigint | null | undefined;

/**
 * A transfer as `read` returns it. Its other fields are for the handlers.
 *
 * @example
 * const read = ({ id, word }: { id: number; word: string }): ReadTransfer => ({ state: word, id, externalId: id });
 */
export interface ReadTransfer {
  /** The name of the event, or the status: a key of `states`. */
  state: string | number;
  /** The id that `query` takes. If the service has only one id, return it as both. */
  id?: Id;
  /** Your own id of the transfer. */
  externalId?: Id;
  /** `100`, `"100"` and `"100.00"` are one fact. Callback and query must have the same unit. */
  amount?: number | string | null | undefined;
  currency?: string | null | undefined;
  /** When the transfer became final: ISO 8601 with `Z` or an offset. Any other value is left out, with one warning. */
  timestamp?: string | null | undefined;
}

/**
 * The result of `read` for an event that is none of your transfers. The payload must be an object with a member, and
 * the result must have no `state`.
 */
export interface IgnoredEvent {
  /** Names it in the log: the first event of each name is a warning. */
  ignored: string;
}

/** The parts of a definition that are needed to read a payload. */
export interface Definition {
  readonly payload?: StandardSchema<unknown> | undefined;
  readonly read: (payload: unknown) => unknown;
  readonly states: Readonly<Record<string, StateMeaning>>;
}

/** Reads a callback of a service by its definition. Never throws. */
export function readPayload(given: unknown, { payload: schema, read, states }: Definition): Reading {
  try {
    // Looked at first, because a schema or `read` may change what it gets.
    const mayIgnore = isEvent(given);
    const parsed = schema === undefined ? { value: given } : parsePayload(schema, given);
    if ('issues' in parsed) return { ...invalid(parsed.issues), error: parsed.error };
    const reading = interpret(read(parsed.value), states);
    if (reading.kind !== 'ignored' || mayIgnore) return reading;
    return invalid([{ path: [], message: `Expected an object with a member to ignore, got ${describeGiven(given)}` }]);
  } catch (error) {
    return invalid([{ path: [], message: describeThrown(error) }]);
  }
}

/**
 * Returns whether this is an object as a parser of JSON or of forms makes it, with a member. A list may have payouts in
 * it, and a Buffer or a promise was never read. An object of another realm has another `Object.prototype`.
 */
function isEvent(payload: unknown): boolean {
  if (typeof payload !== 'object' || payload === null || Object.keys(payload).length === 0) return false;
  const prototype: unknown = Object.getPrototypeOf(payload);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** Returns what the schema makes, or the issues. A schema that throws, or is asynchronous, is a fault of the app. */
function parsePayload(
  schema: StandardSchema<unknown>,
  own: unknown,
): { readonly value: unknown } | { readonly issues: readonly Issue[]; readonly error?: unknown } {
  try {
    return parseWith(schema, own, 'payload');
  } catch (error) {
    return { issues: [{ path: [], message: 'The schema `payload` failed' }], error: toReason(error) };
  }
}

/** Names the error that `read` has thrown. The rest of its message may have a value of the payload. */
function describeThrown(error: unknown): string {
  const { name, message } = error instanceof Error ? error : new Error();
  return `Reading it threw ${name} ${/\(reading '[\w$]{1,40}'\)/.exec(message)?.[0] ?? ''}`.trim();
}

function interpret(read: unknown, states: Definition['states']): Reading {
  if (read instanceof Promise) {
    const error = notSynchronous(read, 'Expected `read` to be synchronous, got a promise.');
    return { ...invalid([{ path: [], message: '`read` is not synchronous' }]), error };
  }
  if (typeof read !== 'object' || read === null) {
    const message = `Expected \`read\` to return an object with a \`state\`, got ${describeGiven(read)}`;
    return invalid([{ path: [], message }]);
  }
  const { ignored, state } = read as Partial<IgnoredEvent & ReadTransfer>;
  if (ignored === undefined) return interpretTransfer(read as ReadTransfer, states);
  // A payload that `read` spreads may have a field of either name.
  if (state !== undefined) return invalid([{ path: ['ignored'], message: 'Expected `state` or `ignored`, got both' }]);
  return ignore(ignored, states);
}

function ignore(name: unknown, states: Definition['states']): Reading {
  if (typeof name !== 'string' || name === '') {
    return invalid([{ path: ['ignored'], message: `Expected a name, got ${describeGiven(name)}` }]);
  }
  const spelling = toSpelling(name);
  if (!Object.keys(states).some((state) => toSpelling(state) === spelling)) return { kind: 'ignored', name };
  const message = 'Expected a name that is no key of `states`, without regard to case and blanks';
  return invalid([{ path: ['ignored'], message }]);
}

/** The service may change how it writes an event, which must not lose its payouts. */
const toSpelling = (name: string): string => name.replace(/\s/g, '').toLowerCase();

function interpretTransfer(read: ReadTransfer, states: Definition['states']): Reading {
  const { id: givenId, externalId: givenExternalId, amount, currency, state: givenState, ...rest } = read;
  const [id, externalId] = [toText(givenId), toText(givenExternalId)];
  const ids = toIds(id, externalId);
  // The text of a list or of an object could be a state. No state is empty.
  const state = toText(givenState) ?? '';
  const meaning = Object.hasOwn(states, state) ? states[state] : undefined;
  if (meaning === undefined) {
    const shown = /^[\w .:/#-]{1,60}$/.test(state) ? state : describeGiven(givenState);
    return invalid([{ path: ['state'], message: `Expected a key of \`states\`, got ${shown}` }], ids);
  }
  if (meaning === 'PENDING') return { kind: 'pending', state, ids };
  const issues = [...findIdIssues(read, ids, { state, meaning }), ...findMoneyIssues(read, meaning)];
  if (issues.length > 0 || id === undefined) return invalid(issues, ids);
  const facts = { externalId, amount: toAmount(amount), currency: toFact(currency) };
  const data = { ...rest, ...facts, id };
  if (meaning === 'OTHER') {
    const callback = { event: 'other', type: state, data } as const;
    const fields = { ...facts, event: 'other', type: state, id: toOtherId(state, id), timestamp: undefined } as const;
    return { kind: 'callback', state, callback, fields };
  }
  const event = finalEvents[meaning];
  const callback = { event, data: { ...data, status: meaning } } as EventShape;
  const given = toFact(rest.timestamp);
  const timestamp = isTime(given) ? given : undefined;
  const fields = { ...facts, event, type: undefined, id, status: meaning, timestamp };
  return { kind: 'callback', state, callback, fields, hasWrongTime: timestamp !== given };
}

/**
 * Returns `undefined` for a value that is neither an id nor a state, such as the empty field of a form. A larger number
 * may have been parsed to a different one.
 */
function toText(given: unknown): string | undefined {
  if (typeof given === 'bigint' || Number.isSafeInteger(given)) return String(given);
  return typeof given === 'string' && given !== '' ? given : undefined;
}

/** Returns `undefined` for null and for an empty string, which have no value. */
function toFact<T>(given: T): NonNullable<T> | undefined {
  return given === '' ? undefined : (given ?? undefined);
}

/** Returns `undefined` for a string without a digit, such as `-` or `N/A`. */
function toAmount<T>(given: T): NonNullable<T> | undefined {
  return typeof given === 'string' && !/\p{Nd}/u.test(given) ? undefined : toFact(given);
}

/** Returns whether this is an ISO 8601 time. Without `Z` or an offset, it would have the time zone of the process. */
function isTime(given: unknown): given is string {
  const pattern = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)$/;
  return typeof given === 'string' && pattern.test(given) && !Number.isNaN(Date.parse(given));
}

function findIdIssues(
  read: ReadTransfer,
  { id, externalId }: Ids,
  { state, meaning }: { state: string; meaning: StateMeaning },
): readonly Issue[] {
  const issues: Issue[] = [];
  if (id === undefined) issues.push({ path: ['id'], message: describeNoId(read.id) });
  else if (!isCallbackId(id)) issues.push({ path: ['id'], message: idMessage });
  else if (meaning === 'OTHER' && !isCallbackId(toOtherId(state, id))) {
    const message = `Expected a shorter one: \`${toOtherId(state, '')}\` and it have at most 255 characters`;
    issues.push({ path: ['id'], message });
  }
  if (externalId !== undefined || meaning === 'OTHER') return issues;
  const advice = '. If the service has renamed the field of your id, correct `read`';
  return [...issues, { path: ['externalId'], message: `${describeNoId(read.externalId)}${advice}` }];
}

function describeNoId(given: unknown): string {
  if (typeof given === 'number')
    return 'Expected a string, or a whole number of at most 2^53 - 1: larger ones are not parsed exactly';
  const got = given === '' ? 'an empty string' : given === null ? 'null' : typeof given;
  return `Expected a string or a whole number, got ${got}`;
}

const noDigit = 'Expected a number, or a string with a digit';

/** A failure may have no amount. Without these checks a field that the service renames would be booked as undefined. */
function findMoneyIssues(read: ReadTransfer, meaning: StateMeaning): readonly Issue[] {
  const issues: Issue[] = [];
  for (const name of ['amount', 'currency'] as const) {
    const given: unknown = toFact<unknown>(read[name]);
    const value = name === 'amount' ? toAmount(given) : given;
    if (value === undefined) {
      const isLacking = meaning === 'SUCCESS' && name in read;
      const message = given === undefined ? 'Expected a value of a transfer that has succeeded, got none' : noDigit;
      if (isLacking) issues.push({ path: [name], message });
    } else if (typeof value === 'number' && name === 'amount') {
      if (!isExact(value)) issues.push({ path: [name], message: amountMessage });
    } else if (typeof value !== 'string') {
      const expected = name === 'amount' ? 'a number or a string' : 'a string';
      issues.push({ path: [name], message: `Expected ${expected}, got a value of type ${typeof value}` });
    }
  }
  return issues;
}

function invalid(issues: readonly Issue[], ids: Ids = {}): Extract<Reading, { kind: 'invalid' }> {
  return { kind: 'invalid', issues, ids };
}
