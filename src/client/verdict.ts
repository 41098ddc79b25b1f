import { parseFingerprint, type TransferCallbackFacts } from '../core/facts.js';
import type { StoreRecord } from '../core/store.js';
import type { AnnouncedTransaction } from './callback.js';
import type { Transaction } from './client.js';
import type { TransferClientError } from './errors.js';

/** What the service responds for a transfer. */
export type ServiceReading =
  | {
      state: 'final';
      event: AnnouncedTransaction['event'];
      transaction: Transaction;
      /** When it became final; `undefined` if `transaction.timestamp` is missing or no time. */
      finalAt: Date | undefined;
    }
  | { state: 'open'; transaction: Transaction }
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
export type FateVerdict =
  /** The service has not finished the transfer. */
  | 'open'
  /** A delivery holds the claim. */
  | 'in_progress'
  /** The handler has succeeded, for the facts that the service gives. */
  | 'handled'
  /** The transfer is final, and no delivery has succeeded. */
  | 'missed'
  /** There is no record, but there may have been one: the transfer has been final for longer than records are kept. */
  | 'missed_or_forgotten'
  /** The handler has succeeded, for other facts than the service gives. */
  | 'conflict'
  /** The handler has succeeded, but for the service the transfer is not final. */
  | 'unfounded'
  /** Neither the service nor the store knows the transfer. */
  | 'unknown'
  /** The service or the record could not be read. */
  | 'undecided';

type ServiceRow = Exclude<ServiceReading['state'], 'final'> | 'final_recently' | 'final_long_ago';
/** `same` and `other`: settled with the facts that the service gives, or with other ones. */
type RecordColumn = Exclude<RecordReading['state'], 'settled'> | 'same' | 'other';

/** The verdict for every pair of readings. */
// prettier-ignore
const verdicts: Readonly<Record<ServiceRow, Readonly<Record<RecordColumn, FateVerdict>>>> = {
  open:           { free: 'open',                claimed: 'in_progress', same: 'unfounded', other: 'unfounded', unread: 'undecided' },
  final_recently: { free: 'missed',              claimed: 'in_progress', same: 'handled',   other: 'conflict',  unread: 'undecided' },
  final_long_ago: { free: 'missed_or_forgotten', claimed: 'in_progress', same: 'handled',   other: 'conflict',  unread: 'undecided' },
  unknown:        { free: 'unknown',             claimed: 'in_progress', same: 'unfounded', other: 'unfounded', unread: 'undecided' },
  unread:         { free: 'undecided',           claimed: 'in_progress', same: 'undecided', other: 'undecided', unread: 'undecided' },
};

/** `facts` are those that the service gives; `retentionMs` is how long records are kept after settling. */
export function toVerdict(
  service: ServiceReading,
  record: RecordReading,
  facts: Partial<Record<keyof TransferCallbackFacts, unknown>>,
  retentionMs: number,
): FateVerdict {
  return verdicts[toRow(service, retentionMs)][toColumn(record, facts)];
}

function toRow(service: ServiceReading, retentionMs: number): ServiceRow {
  if (service.state !== 'final') return service.state;
  // A record is settled after the transfer is final: within the retention it cannot have expired. Without a time it may.
  const { finalAt } = service;
  return finalAt !== undefined && Date.now() - finalAt.getTime() < retentionMs ? 'final_recently' : 'final_long_ago';
}

function toColumn(record: RecordReading, facts: Partial<Record<keyof TransferCallbackFacts, unknown>>): RecordColumn {
  if (record.state !== 'settled') return record.state;
  const settled = parseFingerprint(record.fingerprint);
  // The shape of a response is not documented (service §4.2): a fact that is missing there contradicts nothing.
  const isSame =
    settled !== undefined &&
    (['status', 'amount', 'currency', 'externalId'] as const).every(
      (name) => facts[name] === undefined || facts[name] === settled[name],
    );
  return isSame ? 'same' : 'other';
}

/** What a verdict means and what to do, each in one or two sentences. */
export interface Advice {
  meaning: string;
  advice: string;
}

/** Returns what a verdict means and what to do next. */
export function advise(verdict: FateVerdict, service: ServiceReading, record: RecordReading): Advice {
  if (verdict === 'undecided') return adviseUndecided(service, record);
  if (verdict !== 'in_progress') return advices[verdict];
  const { by, leaseLeftMs } = record as Extract<StoreRecord, { state: 'claimed' }>;
  const seconds = leaseLeftMs === undefined ? undefined : Math.ceil(leaseLeftMs / 1_000);
  return {
    meaning: `A delivery is being handled${by === undefined ? '' : ` by ${by}`}.`,
    advice:
      seconds === undefined
        ? 'Wait, and inspect it again. If its holder has died, the claim becomes free by itself.'
        : `Wait ${seconds} s, and inspect it again. If its holder has died, the claim is free by then.`,
  };
}

const advices: Readonly<Record<Exclude<FateVerdict, 'in_progress' | 'undecided'>, Readonly<Advice>>> = {
  open: {
    meaning: 'The service has not finished this transfer.',
    advice: 'Wait. The service sends the callback when the transfer is final.',
  },
  handled: {
    meaning: 'The handler has succeeded, for the facts that the service gives.',
    advice: 'Nothing is left to do here. If the payout still looks open, look into your own books.',
  },
  missed: {
    meaning: 'The transfer is final, and no delivery has succeeded.',
    advice:
      'Your next reconciliation handles it. To have it handled now, reconcile or resend this transfer. Both use the ' +
      'record, so the handler does not run twice.',
  },
  missed_or_forgotten: {
    meaning: 'There is no record. One may have expired, because the transfer became final too long ago.',
    advice:
      'Compare the transfer with your own books before you reconcile or resend it. If it was handled before, the ' +
      'handler would run again.',
  },
  conflict: {
    meaning: 'The handler has succeeded, for other facts than the service gives now.',
    advice: 'Trust the service. Correct your own books by hand, and do not run the handler again.',
  },
  unfounded: {
    meaning: 'The handler has succeeded, but for the service the transfer is not final.',
    advice:
      'Inspect it again in some minutes, because a query may lag. If nothing changes, the callback was forged: correct ' +
      'your own books, and verify or confirm every callback from now on.',
  },
  unknown: {
    meaning: 'The service responded with 404, and there is no record.',
    advice: 'Check the id and the address of the service. Do not conclude that the transfer has failed.',
  },
};

function adviseUndecided(service: ServiceReading, record: RecordReading): Advice {
  const unread: string[] = [];
  if (service.state === 'unread') unread.push(`the service ${describeFault(service.error)}`);
  if (record.state === 'unread') unread.push(`the record ${describeFault(record.error)}`);
  const meaning = `Nothing can be concluded: ${unread.join(', and ')}.`;
  // Your own id is no key of the store, so that `free` proves nothing then.
  const guess =
    service.state === 'unread' && record.state !== 'unread'
      ? ' Until then the record is that of the given id, and counts only if that is the id of the service.'
      : '';
  return { meaning, advice: `Inspect it again when both can be read.${guess}` };
}

function describeFault(error: unknown): string {
  return error === undefined ? 'was not read' : 'could not be read';
}
