import { toReason } from '../lib/errors.js';
import { parseWith, type StandardSchema, type Issue } from '../lib/standard-schema.js';
import { toPrintable } from '../lib/text.js';
import {
  amountMessage,
  finalEvents,
  idMessage,
  isCallbackId,
  isExact,
  transferCallbackSchema,
  type CallbackShape,
  type FinalStatus,
  type OtherEvent,
} from './callback.js';
import { readFields, type CallbackFields } from './fields.js';
import { isUnreadable } from './input.js';
import type { Invalid } from './outcomes.js';

/** The outcome of an invalid callback, without whether its sender was verified. */
type InvalidCallback = Omit<Invalid, 'verified'>;

/** Returns the callback that the schema makes from `input` and what was read of it, or the issues. Never throws. */
export function validateCallback<C extends CallbackShape>(
  input: unknown,
  schema: StandardSchema<C | OtherEvent>,
  takesOther: boolean,
  takesReversed: boolean,
): { callback: C | OtherEvent; fields: CallbackFields } | InvalidCallback {
  try {
    if (isUnreadable(input)) return invalid(input, schema, input.issues, input.error);
    deleteProtoKeys(input);
    const parsed = parseWith(schema, input);
    if ('issues' in parsed) return invalid(input, schema, parsed.issues);
    const fields = readFields(parsed.value);
    const issues =
      fields.event === 'other' ? findIssuesOfOther(fields, input, takesOther) : findIssues(fields, takesReversed);
    return issues.length === 0 ? { callback: parsed.value, fields } : invalid(input, schema, issues);
  } catch (error) {
    return invalid(input, schema, [{ path: [], message: 'The schema failed' }], toReason(error));
  }
}

/** Returns the issues of a callback that contradicts itself, or has an id or an amount that no callback has. */
function findIssues({ event, id, status, amount }: CallbackFields, takesReversed: boolean): readonly Issue[] {
  const issues: Issue[] = [];
  if (event === finalEvents.REVERSED && !takesReversed) {
    issues.push({ path: ['event'], message: 'A reversal, and no `onReversed` takes it' });
  }
  if (event !== 'other' && event !== finalEvents[status as FinalStatus]) {
    issues.push({ path: ['data', 'status'], message: `Expected the status of ${event}` });
  }
  if (!isCallbackId(id)) issues.push({ path: ['data', 'id'], message: idMessage });
  if (typeof amount === 'number' && !isExact(amount)) issues.push({ path: ['data', 'amount'], message: amountMessage });
  return issues;
}

/** Returns the issues of an event for `onOther`. */
function findIssuesOfOther(fields: CallbackFields, input: unknown, isTaken: boolean): readonly Issue[] {
  if (isFinal(input)) return [{ path: ['event'], message: 'A final status, and `schema` makes another event of it' }];
  if (!isTaken) return [{ path: ['event'], message: 'Not a final status, and no `onOther` takes it' }];
  return isCallbackId(fields.type) ? findIssues(fields, false) : [{ path: ['type'], message: idMessage }];
}

/** Returns whether the service announces a final status. A schema may let it pass for what it does not know. */
function isFinal(input: unknown): boolean {
  const { event } = (input ?? {}) as { event?: unknown };
  return event === 'transfer.success' || event === 'transfer.failed';
}

interface Ids {
  id?: string;
  externalId?: string;
}

/**
 * Returns `id` and `externalId` of what is no valid callback, if they can be read, so that people can find the payout.
 * Another service may have them beside `data`, as numbers, or name the second one `reference`.
 */
function readIds(input: unknown, schema: unknown): Ids {
  const ids: Ids = {};
  try {
    const { data } = input as { data?: unknown };
    const read = (name: string) =>
      [data, input]
        .map((each) => (each as Record<string, unknown> | null | undefined)?.[name])
        .map((value) => (Number.isSafeInteger(value) ? String(value) : value))
        .find((value) => typeof value === 'string');
    const id = read('id');
    const externalId = read('externalId') ?? (schema === transferCallbackSchema ? undefined : read('reference'));
    if (isCallbackId(id)) ids.id = id;
    if (externalId !== undefined) ids.externalId = toPrintable(externalId);
  } catch {
    // Nothing can be read of it, or reading it throws.
  }
  return ids;
}

function invalid(input: unknown, schema: unknown, issues: readonly Issue[], error?: unknown): InvalidCallback {
  return {
    outcome: 'invalid',
    // A zod issue may contain the offending value, such as a phone number. Its path and message may name keys of the
    // sender.
    issues: Object.freeze(
      issues.map(({ path, message }) => {
        const keys = path.map((key) => (typeof key === 'string' ? toPrintable(key) : key));
        return Object.freeze({ path: Object.freeze(keys), message: toPrintable(message) });
      }),
    ),
    ...readIds(input, schema),
    ...(error === undefined ? {} : { error }),
  };
}

/**
 * Deletes every own `__proto__` key inside `value`, in place. `JSON.parse` makes such keys, and zod before 4.4 sets
 * the prototype of its copy from them, as `Object.assign` does. Throws a TypeError if the key is in a frozen object.
 */
export function deleteProtoKeys(value: unknown): void {
  // A Set that grows during its iteration replaces recursion, so deep nesting and cycles are safe.
  const objects = new Set<object>();
  if (isObject(value)) objects.add(value);
  for (const object of objects) {
    delete (object as { __proto__?: unknown }).__proto__;
    for (const child of Object.values(object) as unknown[]) if (isObject(child)) objects.add(child);
  }
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !ArrayBuffer.isView(value);
}
