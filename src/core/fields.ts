import { TransferCallbackError } from '../lib/errors.js';
import type { CallbackShape } from './callback.js';

/** What the receiver reads of a callback. */
export type CallbackFields = CallbackShape['data'] & {
  readonly event: CallbackShape['event'];
  /** `undefined` if a custom schema produces no text. */
  readonly timestamp: string | undefined;
};

/** What a field must be. */
interface Rule {
  readonly path: string;
  readonly expected: string;
  readonly isRight: (value: unknown) => boolean;
}

const isText = (value: unknown): value is string => typeof value === 'string';

const text = (path: string): Rule => ({ path, expected: 'a text', isRight: isText });

const oneOf = (path: string, ...texts: readonly unknown[]): Rule => ({
  path,
  expected: texts.map((each) => `'${String(each)}'`).join(' or '),
  isRight: (value) => texts.includes(value),
});

const rules: readonly Rule[] = [
  // An event that is `other` does not come here.
  {
    ...oneOf('event', 'transfer.success', 'transfer.failed'),
    expected: "'transfer.success', 'transfer.failed' or 'other'",
  },
  text('data.id'),
  text('data.externalId'),
  oneOf('data.status', 'SUCCESS', 'FAILED'),
  {
    path: 'data.amount',
    expected: 'a number, a text or undefined',
    isRight: (value) => value === undefined || typeof value === 'number' || isText(value),
  },
  { path: 'data.currency', expected: 'a text or undefined', isRight: (value) => value === undefined || isText(value) },
];

/**
 * Reads each field once: what a schema has produced may change, or throw, when it is read again. Throws INVALID_ARGUMENT
 * if a field is not what the receiver needs, because callers from JavaScript are not type-checked.
 */
export function readFields(produced: unknown): CallbackFields {
  const { event, data } = (produced ?? {}) as { event?: unknown; data?: Record<string, unknown> | null };
  const { id, externalId, status, amount, currency, timestamp } = data ?? {};
  const values = [event, id, externalId, status, amount, currency];
  const broken = rules.filter(({ isRight }, index) => !isRight(values[index]));
  if (broken.length > 0) {
    const faults = broken.map((rule) => describe(rule, values[rules.indexOf(rule)]));
    throw new TransferCallbackError('INVALID_ARGUMENT', faults.join(' '));
  }
  const time = isText(timestamp) ? timestamp : undefined;
  return { event, id, externalId, status, amount, currency, timestamp: time } as CallbackFields;
}

/** Describes a wrong field by the kind of its value, which could be a phone number, never by the value. */
function describe({ path, expected }: Rule, value: unknown): string {
  const fault = `Expected \`schema\` to produce ${expected} for \`${path}\`, got ${describeKind(value)}.`;
  const name = path.replace('data.', '');
  if (value === null && expected.endsWith('undefined')) return `${fault} Write \`${name}: ${name} ?? undefined\`.`;
  const isNumeric = typeof value === 'number' || typeof value === 'bigint';
  return isNumeric && expected.includes('a text') ? `${fault} Write \`String(${name})\`.` : fault;
}

function describeKind(value: unknown): string {
  if (value === undefined || value === null) return String(value);
  if (typeof value === 'string') return 'another text';
  if (typeof value === 'object') return Array.isArray(value) ? 'an array' : 'an object';
  return `a ${typeof value}`;
}
