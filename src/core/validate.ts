import { toReason } from '../lib/errors.js';
import type { Issue } from '../lib/standard-schema.js';
import { toPrintable } from '../lib/text.js';
import { isCallbackId } from './callback.js';
import { toIds, type Ids, type PayoutService, type Reading } from './payout-service.js';

// A sender's JSON has no symbols. The package may be loaded twice, as ESM and as CommonJS, and `instanceof` recognises
// the class of one copy only.
const kind = Symbol.for('transfer-callbacks.input');

/** What a host hands to a receiver in place of a callback that it could not read: the delivery is `invalid`. */
export class Unreadable {
  readonly [kind] = 'unreadable';
  readonly issues: readonly Issue[];
  /** Set when the receiving app is at fault, for example when its middleware has consumed the body. */
  readonly error: Error | undefined;

  constructor(message: string, error?: Error) {
    this.issues = Object.freeze([Object.freeze({ path: Object.freeze([]), message })]);
    this.error = error;
  }
}

/**
 * What a host hands to a receiver if it has refused the sender before it read the body, and what its `verify` resolves
 * with if it refuses later: the delivery is `unauthorized`.
 */
export class Refused {
  readonly [kind] = 'refused';
  /** Names the verifier that has refused. */
  readonly by: string | undefined;
  /** Set if the verifier failed. */
  readonly error: unknown;

  constructor(by?: string, error?: unknown) {
    this.by = by;
    this.error = error;
  }
}

export function isUnreadable(input: unknown): input is Unreadable {
  return kindOf(input) === 'unreadable';
}

export function isRefused(input: unknown): input is Refused {
  return kindOf(input) === 'refused';
}

/** Every other input is a callback that was parsed, also one that throws when it is read. */
function kindOf(input: unknown): string | undefined {
  try {
    return (input as Partial<Unreadable | Refused> | null | undefined)?.[kind];
  } catch {
    return undefined;
  }
}

type Invalid = Extract<Reading, { kind: 'invalid' }>;

/** Returns what the service reads of `input`. The strings of an invalid callback are printable. Never throws. */
export function validateCallback(
  input: unknown,
  service: Pick<PayoutService, 'readCallback'>,
  takesOther: boolean,
): Reading {
  try {
    deleteProtoKeys(input);
    const reading = service.readCallback(input);
    if (reading.kind === 'invalid') return toShown(reading);
    if (reading.kind !== 'callback' || reading.fields.event !== 'other' || takesOther) return reading;
    const { id, externalId }: Ids = reading.callback.data;
    return toShown({ issues: [noFinalStatus], ids: toIds(id, externalId) });
  } catch (error) {
    return toShown({ issues: [unreadable], ids: {}, error: toReason(error) });
  }
}

const noFinalStatus: Issue = { path: ['event'], message: 'Not a final status, and no `onOther` takes it' };
const unreadable: Issue = { path: [], message: 'The callback cannot be read' };

/**
 * A zod issue may contain the offending value, such as a phone number. Its path and message may name keys of the
 * sender.
 */
function toShown({ issues, ids: { id, externalId }, error }: Omit<Invalid, 'kind'>): Invalid {
  return {
    kind: 'invalid',
    issues: Object.freeze(
      issues.map(({ path, message }) => {
        const keys = path.map((key) => (typeof key === 'string' ? toPrintable(key) : key));
        return Object.freeze({ path: Object.freeze(keys), message: toPrintable(message) });
      }),
    ),
    ids: toIds(isCallbackId(id) ? id : undefined, externalId && toPrintable(externalId)),
    error,
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
