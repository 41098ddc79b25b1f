import { isSameAmount, parseFingerprint, type TransferCallbackFacts } from '../../core/facts.js';
import type { StoreRecord } from '../../core/store.js';
import type { Announcement } from '../ask.js';
import type { Transaction } from '../get-transaction.js';
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
      /** Whether its status reads as a final one, such as SUCCESSFUL. The documented words are SUCCESS and FAILED. */
      seemsFinal: boolean;
    }
  /** The service responded with 404. What it responds for an unknown transfer is not documented (service §7). */
  | { state: 'unknown'; error: TransferClientError }
  /** The transfer could not be read; `error` is `undefined` if there was no `client`. */
  | { state: 'unread'; error: TransferClientError | undefined };

/** What the store has recorded for a transfer. */
export type RecordReading =
  | StoreRecord
  /** The record could not be read; `error` is `undefined` if there was neither `store` nor `receiver`. */
  | { state: 'unread'; error: unknown };

/** What became of a transfer. */
export type TransferVerdict =
  /** The service has not finished the transfer. */
  | 'open'
  /** A delivery holds the claim. */
  | 'in_progress'
  /** The handler has succeeded, for the facts that the service gives. */
  | 'handled'
  /** The transfer is final, and there is no record: it was not handled, or the store has lost the record. */
  | 'missed'
  /** The handler has succeeded, for other facts than the service gives. */
  | 'conflict'
  /** The handler has succeeded, but for the service the transfer is not final. */
  | 'unfounded'
  /** Neither the service nor the store knows the transfer. */
  | 'unknown'
  /** The service or the record could not be read, or the service responds with 404 for what was handled. */
  | 'undecided';

/** `same` and `other`: settled with the facts that the service gives, or with other ones. */
type RecordColumn = Exclude<RecordReading['state'], 'settled'> | 'same' | 'other';

/** The verdict for every pair of readings. */
// prettier-ignore
const verdicts: Readonly<Record<ServiceReading['state'], Readonly<Record<RecordColumn, TransferVerdict>>>> = {
  open:    { free: 'open',      claimed: 'in_progress', same: 'unfounded', other: 'unfounded', unread: 'undecided' },
  final:   { free: 'missed',    claimed: 'in_progress', same: 'handled',   other: 'conflict',  unread: 'undecided' },
  unknown: { free: 'unknown',   claimed: 'in_progress', same: 'undecided', other: 'undecided', unread: 'undecided' },
  unread:  { free: 'undecided', claimed: 'in_progress', same: 'undecided', other: 'undecided', unread: 'undecided' },
};

/** `facts` are those that the service gives. */
export function toVerdict(
  service: ServiceReading,
  record: RecordReading,
  facts: Partial<Record<keyof TransferCallbackFacts, unknown>>,
): TransferVerdict {
  return verdicts[service.state][toColumn(record, facts)];
}

function toColumn(record: RecordReading, facts: Partial<Record<keyof TransferCallbackFacts, unknown>>): RecordColumn {
  if (record.state !== 'settled') return record.state;
  const settled = parseFingerprint(record.fingerprint);
  // Written by another version, or by a store of your own.
  if (settled === undefined) return 'unread';
  // The shape of a response is not documented (service §4.2), and another service's callback may have no amount: a fact
  // that is missing contradicts nothing.
  const isSame = (['status', 'amount', 'currency', 'externalId'] as const).every(
    (name) =>
      facts[name] === undefined ||
      (settled[name] === undefined && (name === 'amount' || name === 'currency')) ||
      facts[name] === settled[name] ||
      (name === 'amount' && isSameAmount(facts.amount, settled.amount)),
  );
  return isSame ? 'same' : 'other';
}
