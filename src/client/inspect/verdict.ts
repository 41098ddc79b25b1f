import { isSameAmount, parseFingerprint, type TransferCallbackFacts } from '../../core/facts.js';
import type { Announcement, Transaction } from '../../core/payout-service.js';
import type { StoreRecord } from '../../core/store.js';
import type { TransferClientError } from '../errors.js';

/** What the service responds for a transfer. */
export type ServiceReading =
  | {
      state: 'final';
      event: Announcement['event'];
      transaction: Transaction;
      /**
       * The callback of this transaction, as the service sends it. Give it to `receiver.receive` to handle the
       * transfer.
       */
      callback: unknown;
      /** When it became final; `undefined` if `transaction.timestamp` is missing or no time. */
      finalAt: Date | undefined;
    }
  | {
      state: 'open';
      transaction: Transaction;
      /**
       * Whether its status reads as a final one, such as SUCCESSFUL. The documented words are SUCCESS and FAILED. Never
       * of a service that was defined: its `states` tell which of them are final.
       */
      seemsFinal: boolean;
    }
  /**
   * The service responded with 404. What it responds for an unknown transfer is not documented (service §7). For a
   * service that was defined, `query` may also have resolved with `undefined`.
   */
  | { state: 'unknown'; error: TransferClientError }
  /** The transfer could not be read; `error` is `undefined` if the service cannot be asked. */
  | { state: 'unread'; error: TransferClientError | undefined };

/** What the store has recorded for a transfer. */
export type RecordReading =
  /** `reversal` is the record of the refund, if a receiver with `onReversed` has one. */
  | (StoreRecord & { reversal?: StoreRecord | undefined })
  /** The record could not be read. */
  | { state: 'unread'; error: unknown };

/** What became of a transfer. */
export type TransferVerdict =
  /** The service has not finished the transfer. */
  | 'open'
  /** A delivery holds the claim. */
  | 'in_progress'
  /**
   * The handler has succeeded, for the facts that the service reports. Or the payout was refunded, and that is final.
   */
  | 'handled'
  /** The transfer is final, and this status has no record: it was not handled, or the store has lost the record. */
  | 'missed'
  /** The handler has succeeded, for other facts than the service reports. */
  | 'conflict'
  /** The handler has succeeded, but for the service the transfer is not final. */
  | 'unfounded'
  /** Neither the service nor the store knows the transfer. */
  | 'unknown'
  /** The service or the record could not be read, or the service responds with 404 for what was handled. */
  | 'undecided';

/**
 * `same` and `other`: handled with the facts that the service reports, or with other ones. `before`: handled as the
 * success that the service has reversed since.
 */
type RecordColumn = Exclude<RecordReading['state'], 'handled'> | 'same' | 'other' | 'before';

/** The verdict for every pair of readings. Only a final transfer has facts to compare. */
// prettier-ignore
const verdicts: Readonly<Record<ServiceReading['state'], Readonly<Record<RecordColumn, TransferVerdict>>>> = {
  open:    { free: 'open',      claimed: 'in_progress', same: 'unfounded', other: 'unfounded', before: 'unfounded', unread: 'undecided' },
  final:   { free: 'missed',    claimed: 'in_progress', same: 'handled',   other: 'conflict',  before: 'missed',    unread: 'undecided' },
  unknown: { free: 'unknown',   claimed: 'in_progress', same: 'undecided', other: 'undecided', before: 'undecided', unread: 'undecided' },
  unread:  { free: 'undecided', claimed: 'in_progress', same: 'undecided', other: 'undecided', before: 'undecided', unread: 'undecided' },
};

type Facts = Partial<Record<keyof TransferCallbackFacts, unknown>>;

/** `facts` are the facts that the service reports. */
export function toVerdict(service: ServiceReading, record: RecordReading, facts: Facts): TransferVerdict {
  return verdicts[service.state][toColumn(record, facts)];
}

function toColumn(record: RecordReading, facts: Facts): RecordColumn {
  if (record.state === 'unread') return 'unread';
  const records = [record, record.reversal].filter((each) => each !== undefined);
  if (records.some(({ state }) => state === 'claimed')) return 'claimed';
  const handled = records.filter((each) => each.state === 'handled').map((each) => parseFingerprint(each.fingerprint));
  if (handled.length === 0) return 'free';
  const known = handled.filter((each) => each !== undefined);
  // Written by another version, or by a store of your own.
  if (known.length < handled.length) return 'unread';
  return known.every((each) => isSameMoney(facts, each)) ? compareStatus(facts.status, known) : 'other';
}

/**
 * The shape of a response is not documented (service §4.2), and another service's callback may have no amount: a fact
 * that is missing contradicts nothing.
 */
function isSameMoney(facts: Facts, handled: TransferCallbackFacts): boolean {
  return (['amount', 'currency', 'externalId'] as const).every(
    (name) =>
      facts[name] === undefined ||
      (handled[name] === undefined && name !== 'externalId') ||
      facts[name] === handled[name] ||
      (name === 'amount' && isSameAmount(facts.amount, handled.amount)),
  );
}

/** Compares the status that the service reports with the status in each record, of the transfer and its reversal. */
function compareStatus(status: unknown, handled: readonly TransferCallbackFacts[]): RecordColumn {
  const statuses = handled.map((each) => each.status);
  if (status === 'SUCCESS') return statuses.every((each) => each === 'SUCCESS') ? 'same' : 'other';
  // A failure and a reversal both refund the payout, so only one of them is handled.
  if (statuses.some((each) => each === 'FAILED' || each === 'REVERSED')) return 'same';
  return status === 'REVERSED' ? 'before' : 'other';
}
