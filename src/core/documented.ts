import { TransferCallbackError, toReason } from '../lib/errors.js';
import { parseWith, type Issue, type StandardSchema } from '../lib/standard-schema.js';
import {
  amountMessage,
  finalEvents,
  idMessage,
  isCallbackId,
  isExact,
  type CallbackShape,
  type TransferCallback,
} from './callback.js';
import { transferCallbackSchema } from './callback-schema.js';
import { toIds, type CallbackFields, type Ids, type PayoutService, type Reading } from './payout-service.js';

/**
 * Makes the documented service (service §2, §6), which cannot be asked. A `payload` of yours may change or leave out
 * fields of a callback, but it keeps the event, the id and the status.
 */
export function documentedService<C extends CallbackShape = TransferCallback>(
  payload?: StandardSchema<C>,
): PayoutService<C> {
  // Without a schema, C is its default, TransferCallback.
  const schema = payload ?? (transferCallbackSchema as unknown as StandardSchema<C>);
  return {
    readCallback(given) {
      try {
        return readDocumented(given, schema);
      } catch (error) {
        return invalid(given, [{ path: [], message: 'The schema failed' }], toReason(error));
      }
    },
    meanings: new Set(['SUCCESS', 'FAILED']),
  };
}

function readDocumented<C extends CallbackShape>(given: unknown, schema: StandardSchema<C>): Reading<C> {
  // Read what was sent first, because a schema may change its input in place.
  const sent = readSent(given);
  const parsed = parseWith(schema, given, 'payload');
  if ('issues' in parsed) return invalid(given, parsed.issues);
  const { event, data } = toMade(parsed.value);
  // Read each field once, because what a schema makes may change when it is read again. Another unit or spelling of an
  // amount or a currency counts as made, and what the schema leaves out as sent.
  const { id, externalId, status, amount = sent.amount, currency = sent.currency, timestamp } = data ?? {};
  // With another id, what was handled before would be handled again.
  if (event !== sent.event || id !== sent.id || status !== sent.status) throw changed();
  const shown = typeof timestamp === 'string' ? timestamp : undefined;
  const fields = { event, type: undefined, id, externalId, status, amount, currency, timestamp: shown };
  const issues = findIssues(fields);
  if (issues.length > 0) return invalid(given, issues);
  return { kind: 'callback', state: String(status), callback: parsed.value, fields: fields as CallbackFields };
}

/** What may be there: callers from JavaScript are not type-checked. */
interface Made {
  readonly event?: unknown;
  readonly data?: Partial<Record<'id' | 'externalId' | 'status' | 'amount' | 'currency' | 'timestamp', unknown>> | null;
}

const toMade = (value: unknown): Made => value ?? {};

function readSent(given: unknown): Partial<Record<'event' | 'id' | 'status' | 'amount' | 'currency', unknown>> {
  const { event, data } = toMade(given);
  const { id, status, amount, currency } = data ?? {};
  return { event, id, status, amount, currency };
}

/** Returns what is wrong with the fields that the receiver needs. A schema of yours may check none of them. */
function findIssues({ event, id, externalId, status, amount, currency }: Readonly<Record<string, unknown>>): Issue[] {
  if (event !== finalEvents.SUCCESS && event !== finalEvents.FAILED) {
    return [{ path: ['event'], message: `Expected ${finalEvents.SUCCESS} or ${finalEvents.FAILED}` }];
  }
  const issues: Issue[] = [];
  const expected = event === finalEvents.SUCCESS ? 'SUCCESS' : 'FAILED';
  if (!isCallbackId(id)) issues.push({ path: ['data', 'id'], message: idMessage });
  if (typeof externalId !== 'string') issues.push({ path: ['data', 'externalId'], message: 'Expected a string' });
  if (status !== expected) issues.push({ path: ['data', 'status'], message: `Expected the status of ${event}` });
  if (typeof amount === 'number') {
    if (!isExact(amount)) issues.push({ path: ['data', 'amount'], message: amountMessage });
  } else if (typeof amount !== 'string') {
    issues.push({ path: ['data', 'amount'], message: 'Expected a number or a string' });
  }
  if (typeof currency !== 'string') issues.push({ path: ['data', 'currency'], message: 'Expected a string' });
  return issues;
}

function changed(): TransferCallbackError {
  return new TransferCallbackError(
    'INVALID_ARGUMENT',
    'Expected `payload` to keep `event`, `data.id` and `data.status` of the callback. For another service write ' +
      '`service: defineService({ read, states })`.',
  );
}

function invalid(given: unknown, issues: readonly Issue[], error?: unknown): Extract<Reading, { kind: 'invalid' }> {
  return { kind: 'invalid', issues, ids: readIds(given), error };
}

/** Returns the ids of an invalid callback, if they can be read, so that people can find the payout. */
function readIds(payload: unknown): Ids {
  try {
    const { data } = payload as { data?: unknown };
    const read = (name: string): string | undefined =>
      [data, payload]
        .map((each) => (each as Record<string, unknown> | null | undefined)?.[name])
        .map((value) => (Number.isSafeInteger(value) ? String(value) : value))
        .find((value) => typeof value === 'string');
    return toIds(read('id'), read('externalId'));
  } catch {
    // The payload has no fields, or reading them throws.
    return {};
  }
}
