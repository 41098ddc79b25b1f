import { TransferCallbackError, toReason } from '../lib/errors.js';
import { parseWith, type Issue, type StandardSchema } from '../lib/standard-schema.js';
import {
  amountMessage,
  finalEvents,
  idMessage,
  isCallbackId,
  isExact,
  type CallbackShape,
  type OtherEvent,
} from './callback.js';
import { readFields, type CallbackFields } from './fields.js';
import { toIds, type Ids, type PayoutService, type Reading } from './payout-service.js';

/**
 * Makes the documented service (service §2, §6). `schema` may change the other fields of a callback, and may make
 * events of `onOther`, but it keeps the event, the id and the status of each callback.
 */
export function documentedService<C extends CallbackShape>(
  schema: StandardSchema<C | OtherEvent>,
): PayoutService<C | OtherEvent> {
  return {
    readCallback(payload) {
      try {
        return readDocumented(payload, schema);
      } catch (error) {
        return invalid(payload, [{ path: [], message: 'The schema failed' }], toReason(error));
      }
    },
  };
}

function readDocumented<C extends CallbackShape>(
  payload: unknown,
  schema: StandardSchema<C | OtherEvent>,
): Reading<C | OtherEvent> {
  // Read the announced fields first, because a schema may change its input in place.
  const announced = readAnnounced(payload);
  const parsed = parseWith(schema, payload);
  if ('issues' in parsed) return invalid(payload, parsed.issues);
  const fields = readFields(parsed.value, 'schema');
  const issues = fields.event === 'other' ? findIssuesOfOther(fields, announced) : findIssues(fields, announced);
  if (issues.length > 0) return invalid(payload, issues);
  const state = fields.event === 'other' ? String(fields.type) : String(fields.status);
  return { kind: 'callback', state, callback: parsed.value, fields };
}

type Announced = Readonly<Record<'event' | 'id' | 'status', unknown>>;

function readAnnounced(payload: unknown): Announced {
  const { event, data } = (payload ?? {}) as { event?: unknown; data?: Partial<Announced> | null };
  const { id, status } = data ?? {};
  return { event, id, status };
}

/**
 * Returns the issues of a callback that contradicts itself, or has an id or an amount that no callback has. A schema of
 * yours may check neither.
 */
function findIssues({ event, id, status, amount, currency }: CallbackFields, announced: Announced): readonly Issue[] {
  if (event !== announced.event || id !== announced.id || status !== announced.status) throw changed();
  if (amount === undefined || currency === undefined) throw lacking();
  const issues: Issue[] = [];
  if (event !== finalEvents.SUCCESS && event !== finalEvents.FAILED) {
    issues.push({ path: ['event'], message: `Expected ${finalEvents.SUCCESS} or ${finalEvents.FAILED}` });
  } else if (status !== (event === finalEvents.SUCCESS ? 'SUCCESS' : 'FAILED')) {
    issues.push({ path: ['data', 'status'], message: `Expected the status of ${event}` });
  }
  if (!isCallbackId(id)) issues.push({ path: ['data', 'id'], message: idMessage });
  if (typeof amount === 'number' && !isExact(amount)) issues.push({ path: ['data', 'amount'], message: amountMessage });
  return issues;
}

function changed(): TransferCallbackError {
  return new TransferCallbackError(
    'INVALID_ARGUMENT',
    'Expected `schema` to keep `event`, `data.id` and `data.status` of the callback. For another service write ' +
      '`service: defineService({ read, states })`.',
  );
}

function lacking(): TransferCallbackError {
  return new TransferCallbackError(
    'INVALID_ARGUMENT',
    'Expected `schema` to make `data.amount` and `data.currency`, got undefined.',
  );
}

/** Returns the issues of an event for `onOther`. A schema may turn an unknown callback into one. */
function findIssuesOfOther({ type, id, amount }: CallbackFields, { event }: Announced): readonly Issue[] {
  if (event === finalEvents.SUCCESS || event === finalEvents.FAILED) {
    return [{ path: ['event'], message: 'A final status, and `schema` makes another event of it' }];
  }
  if (!isCallbackId(type)) return [{ path: ['type'], message: idMessage }];
  if (!isCallbackId(id)) return [{ path: ['data', 'id'], message: idMessage }];
  const isWrong = typeof amount === 'number' && !isExact(amount);
  return isWrong ? [{ path: ['data', 'amount'], message: amountMessage }] : [];
}

function invalid(payload: unknown, issues: readonly Issue[], error?: unknown): Extract<Reading, { kind: 'invalid' }> {
  return { kind: 'invalid', issues, ids: readIds(payload), error };
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
