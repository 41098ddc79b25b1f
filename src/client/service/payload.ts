import {
  amountMessage,
  finalEvents,
  idMessage,
  isCallbackId,
  isExact,
  type CallbackShape,
  type FinalStatus,
} from '../../core/callback.js';
import { documentedService } from '../../core/documented.js';
import { toInvalid, type CallbackFields, type PayoutService, type Reading } from '../../core/payout-service.js';
import { TransferCallbackError, toReason } from '../../lib/errors.js';
import { parseWith, type Issue, type StandardSchema } from '../../lib/standard-schema.js';

/**
 * Makes the documented service with a schema of its callbacks, which may change or leave out fields, but keeps the
 * event, the id and the status.
 */
export function serviceWithPayload<C extends CallbackShape>(payload: StandardSchema<C>): PayoutService<C> {
  return {
    meanings: documentedService.meanings,
    readCallback(given) {
      try {
        return readWith(payload, given);
      } catch (error) {
        return toInvalid(given, [{ path: [], message: 'The schema failed' }], toReason(error));
      }
    },
  };
}

function readWith<C extends CallbackShape>(payload: StandardSchema<C>, given: unknown): Reading<C> {
  // Read what was sent first, because a schema may change its input in place.
  const sent = readSent(given);
  const parsed = parseWith(payload, given, 'payload');
  if ('issues' in parsed) return toInvalid(given, parsed.issues);
  const { event, data } = toMade(parsed.value);
  // Read each field once, because what a schema makes may change when it is read again. Another unit or spelling of an
  // amount or a currency counts as made, and what the schema leaves out as sent.
  const { id, externalId, status, amount = sent.amount, currency = sent.currency, timestamp } = data ?? {};
  // With another id, what was handled before would be handled again.
  if (event !== sent.event || id !== sent.id || status !== sent.status) throw changed();
  const shown = typeof timestamp === 'string' ? timestamp : undefined;
  const fields = { event, type: undefined, id, externalId, status, amount, currency, timestamp: shown };
  const issues = findIssues(fields);
  if (issues.length > 0) return toInvalid(given, issues);
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
  const isAmount = typeof amount === 'number' || typeof amount === 'string';
  const checks: readonly [string, boolean, string][] = [
    ['id', isCallbackId(id), idMessage],
    ['externalId', typeof externalId === 'string', 'Expected a string'],
    ['status', finalEvents[status as FinalStatus] === event, `Expected the status of ${event}`],
    ['amount', isAmount, 'Expected a number or a string'],
    ['amount', typeof amount !== 'number' || isExact(amount), amountMessage],
    ['currency', typeof currency === 'string', 'Expected a string'],
  ];
  return checks.filter(([, isRight]) => !isRight).map(([name, , message]) => ({ path: ['data', name], message }));
}

function changed(): TransferCallbackError {
  return new TransferCallbackError(
    'INVALID_ARGUMENT',
    'Expected `payload` to keep `event`, `data.id` and `data.status` of the callback. For another service write ' +
      '`service: defineService({ read, states })`.',
  );
}
