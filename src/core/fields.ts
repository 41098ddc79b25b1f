import { TransferCallbackError } from '../lib/errors.js';
import { toOtherId, type EventShape } from './callback.js';
import type { TransferCallbackFacts } from './facts.js';

/** The fields that the receiver reads of a callback. An event of `onOther` may leave out its facts. */
export interface CallbackFields extends TransferCallbackFacts {
  readonly event: EventShape['event'];
  /** Set for an event of `onOther` only. */
  readonly type: string | undefined;
  /** Names it in log lines and outcomes. */
  readonly id: string;
  /** `undefined` if it is no string. */
  readonly timestamp: string | undefined;
}

/** What a field must be. */
interface Rule {
  readonly expected: string;
  readonly isRight: (value: unknown) => boolean;
}

const isText = (value: unknown): value is string => typeof value === 'string';
const text: Rule = { expected: 'a string', isRight: isText };
const amount: Rule = {
  expected: 'a number or a string',
  isRight: (value) => typeof value === 'number' || isText(value),
};
const optional = ({ expected, isRight }: Rule): Rule => ({
  expected: `${expected}, or undefined`,
  isRight: (value) => value === undefined || isRight(value),
});

type Rules = readonly (readonly [name: string, rule: Rule])[];

const money: Rules = [
  ['amount', optional(amount)],
  ['currency', optional(text)],
];
const transferRules: Rules = [['id', text], ['externalId', text], ['status', text], ...money];
/** Another event may leave out every fact. */
const otherRules: Rules = [['id', text], ['externalId', optional(text)], ['status', optional(text)], ...money];

/**
 * Reads each field once: a value that is no literal may change, or throw, when it is read again. Throws if a field is
 * not what the receiver needs, because callers from JavaScript are not type-checked. `option` has made the value.
 */
export function readFields(made: unknown, option: 'schema' | 'confirm'): CallbackFields {
  const { event, type, data } = (made ?? {}) as Record<'event' | 'type', unknown> & { data?: Record<string, unknown> };
  const { id, externalId, status, amount, currency, timestamp } = data ?? {};
  const isOther = event === 'other';
  const values: Readonly<Record<string, unknown>> = { id, externalId, status, amount, currency };
  requireRight(option, 'event', text, event);
  if (isOther) requireRight(option, 'type', text, type);
  for (const [name, rule] of isOther ? otherRules : transferRules) {
    requireRight(option, name, rule, values[name]);
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

/** Throws about a wrong field by the kind of its value, which could be a phone number, never by the value. */
function requireRight(option: 'schema' | 'confirm', name: string, { expected, isRight }: Rule, value: unknown): void {
  if (isRight(value)) return;
  const path = name === 'event' || name === 'type' ? name : `data.${name}`;
  const kind = value === null ? 'null' : Array.isArray(value) ? 'an array' : `a value of type ${typeof value}`;
  throw new TransferCallbackError(
    option === 'confirm' ? 'UNCONFIRMED' : 'INVALID_ARGUMENT',
    `Expected \`${option}\` to make \`${path}\` ${expected}, got ${value === undefined ? 'undefined' : kind}.`,
  );
}
