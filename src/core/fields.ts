import { TransferCallbackError } from '../lib/errors.js';
import { finalEvents, toOtherId, type EventShape } from './callback.js';
import type { TransferCallbackFacts } from './facts.js';

/** What the receiver reads of a callback: of another event its facts, too, if it has any. */
export interface CallbackFields extends TransferCallbackFacts {
  readonly event: EventShape['event'];
  /** Set of an event of `onOther` only. */
  readonly type: string | undefined;
  /** By which log lines and outcomes know it. */
  readonly id: string;
  /** `undefined` if a custom schema produces no text. */
  readonly timestamp: string | undefined;
}

/** What was read of a callback. */
type Values = Record<'event' | 'type' | 'id' | 'externalId' | 'status' | 'amount' | 'currency', unknown>;

/** What a field must be. */
interface Rule {
  readonly field: keyof Values;
  readonly expected: string;
  readonly isRight: (value: unknown) => boolean;
}

const isText = (value: unknown): value is string => typeof value === 'string';

const text = (field: keyof Values): Rule => ({ field, expected: 'a text', isRight: isText });

const oneOf = (field: keyof Values, ...texts: readonly unknown[]): Rule => ({
  field,
  expected: texts.map((each) => `'${String(each)}'`).join(' or '),
  isRight: (value) => texts.includes(value),
});

const optional = (rule: Rule): Rule => ({
  ...rule,
  expected: `${rule.expected} or undefined`,
  isRight: (value) => value === undefined || rule.isRight(value),
});

const moneyRules: readonly Rule[] = [
  {
    field: 'amount',
    expected: 'a number, a text or undefined',
    isRight: (value) => value === undefined || typeof value === 'number' || isText(value),
  },
  optional(text('currency')),
];

const transferRules: readonly Rule[] = [
  // `other` is for the message: such an event has rules of its own.
  oneOf('event', ...Object.values(finalEvents), 'other'),
  text('id'),
  text('externalId'),
  oneOf('status', ...Object.keys(finalEvents)),
  ...moneyRules,
];

/** Another event may leave out every fact. */
const otherRules: readonly Rule[] = [
  text('type'),
  text('id'),
  optional(text('externalId')),
  optional(text('status')),
  ...moneyRules,
];

/**
 * Reads each field once: what a schema has produced may change, or throw, when it is read again. Throws
 * INVALID_ARGUMENT if a field is not what the receiver needs, because callers from JavaScript are not type-checked.
 */
export function readFields(produced: unknown): CallbackFields {
  const { event, type, data } = (produced ?? {}) as Record<'event' | 'type', unknown> & {
    data?: Record<string, unknown>;
  };
  const { id, externalId, status, amount, currency, timestamp } = data ?? {};
  const isOther = event === 'other';
  const values: Values = { event, type, id, externalId, status, amount, currency };
  const broken = (isOther ? otherRules : transferRules).filter(({ field, isRight }) => !isRight(values[field]));
  if (broken.length > 0) {
    const faults = broken.map((rule) => describe(rule, values[rule.field]));
    throw new TransferCallbackError('INVALID_ARGUMENT', faults.join(' '));
  }
  return {
    event,
    type: isOther ? type : undefined,
    id: isOther ? toOtherId(type as string, id as string) : id,
    externalId,
    status,
    amount,
    currency,
    timestamp: isText(timestamp) && !isOther ? timestamp : undefined,
  } as CallbackFields;
}

/** Describes a wrong field by the kind of its value, which could be a phone number, never by the value. */
function describe({ field, expected }: Rule, value: unknown): string {
  const path = field === 'event' || field === 'type' ? field : `data.${field}`;
  const fault = `Expected \`schema\` to produce ${expected} for \`${path}\`, got ${describeKind(value)}.`;
  if (value === null && expected.endsWith('undefined')) return `${fault} Write \`${field}: ${field} ?? undefined\`.`;
  const isNumeric = typeof value === 'number' || typeof value === 'bigint';
  return isNumeric && expected.includes('a text') ? `${fault} Write \`String(${field})\`.` : fault;
}

function describeKind(value: unknown): string {
  if (value === undefined || value === null) return String(value);
  if (typeof value === 'string') return 'another text';
  if (typeof value === 'object') return Array.isArray(value) ? 'an array' : 'an object';
  return `a ${typeof value}`;
}
