import type { PayoutService } from '../../core/payout-service.js';
import type { Issue } from '../../lib/standard-schema.js';
import type { OutcomeName, TransferCallbackOutcome } from '../../core/outcomes.js';
import type { TransferClientError } from '../errors.js';
import { translateStatus } from '../open-status.js';
import type { Trouble } from './throttle.js';

/**
 * A transfer of your own books: of those that are still open, or of those that are paid.
 *
 * @example
 * const pending: PendingTransfer[] = [{ id: 'payout-1', createdAt: new Date('2026-01-15T10:30:00Z') }];
 */
export interface PendingTransfer {
  /** The service's id or your own externalId. A numeric key is used as a string. */
  id: string | number | bigint;
  /** When you created it: a Date, or milliseconds since 1970. */
  createdAt: Date | number;
}

/**
 * What became of one transfer.
 *
 * @example
 * function onProgress(transfer: Reconciled): void {
 *   if (transfer.result === 'failed') console.error(transfer.id, transfer.error);
 * }
 */
export type Reconciled = {
  id: string;
  /** The status that the service reports; `undefined` if the transfer was not read. */
  status?: string | undefined;
  /** Set for a transfer of `paid`. */
  paid?: true | undefined;
  /**
   * Set with any result if `createdAt` is over 15 minutes in the future, because the transfer was queried immediately,
   * and with `not_final` if a transfer of `paid` is over a week old.
   */
  error?: TransferClientError | undefined;
} &
  /** The handler has succeeded, now. */
  (
    | { result: 'processed' }
    /** The handler had succeeded before: the callback had arrived. */
    | { result: 'duplicate' }
    /** Only for a transfer of `paid`: the service reports it as succeeded. Nothing was run. */
    | { result: 'unchanged' }
    /**
     * `too_young`: younger than `minAgeMs`. `not_final`: still open. `not_read`: the run ended first, or the receiver
     * closes.
     */
    | { result: 'pending'; reason: 'too_young' | 'not_final' | 'not_read' }
    /** The service responded with 404. What it responds for an unknown transfer is not documented (service §7). */
    | { result: 'unknown'; error: TransferClientError }
    /** The transfer could not be read or handled. This does not mean that the transfer failed. */
    | ({ result: 'failed'; error: TransferClientError } & Partial<NotHandled>)
  );

type Conflict = Extract<TransferCallbackOutcome, { outcome: 'conflict' }>;

/** How the receiver ended with a final transfer that it did not handle. */
export interface NotHandled {
  outcome: OutcomeName;
  /** What is wrong with the transaction, if it is `invalid`. */
  issues: readonly Issue[];
  /** The facts that were handled before, if they are in `conflict`. */
  recorded: Conflict['recorded'];
  /** The facts that the service reports now, if they are in `conflict`. */
  received: Conflict['received'];
}

/** Why a run ended before its last transfer. */
export type Stopped =
  /** 10 failures of one kind in a row; `unavailable` also when the service asks for a pause of over 60 s. */
  | Trouble
  /** The receiver was closing. */
  | 'closing'
  /** `signal` aborted. */
  | 'aborted'
  /** `limit` was reached. */
  | 'limit'
  /** `pending`, `paid` or `onProgress` threw. */
  | 'error';

/**
 * The number of transfers of `pending` with each result, and what is known of the run. `paid` is the same for that
 * list. Safe as JSON, if your items are: `cursor` is one.
 *
 * @example
 * const isComplete = ({ stopped }: ReconciliationReport): boolean => stopped === undefined;
 */
export interface ReconciliationReport extends Record<Reconciled['result'], number> {
  /**
   * The first 100 transfers with an `error`: all that are `failed` or `unknown`, and each transfer of `paid` that is
   * open a week after its creation. `onProgress` gets all.
   */
  problems: (Reconciled & { error: TransferClientError })[];
  /**
   * The age of the oldest transfer that is not `processed`, `duplicate` or `unchanged`; `undefined` if there is none.
   */
  oldestOpenMs: number | undefined;
  /** Why the run ended before its last transfer; `undefined` if it did not. */
  stopped: Stopped | undefined;
  /**
   * How many transfers are open at the service, by the status that it gives, such as `{ PENDING: 3 }`. At most 20
   * statuses.
   */
  openStatuses: Record<string, number>;
  /**
   * A message if the service responded with 404 to every query, or if an open transfer of `pending` is older than a day
   * or has a status that reads as final, such as SUCCESSFUL; otherwise `undefined`. Every status of a service that was
   * defined has a meaning, so none of them only reads as final.
   */
  advice: string | undefined;
  /**
   * The last transfer up to which all were read. Let your query for the next run begin after it, and at the start
   * once a run ends without `stopped`. Set when the run has ended; `undefined` if there is none.
   */
  cursor: PendingTransfer | undefined;
  /** How many transfers were queried. */
  queries: number;
  /** How long it took, for the whole report with `paid`. */
  durationMs: number;
  /** What became of `paid`, which is taken if `pending` has ended without `stopped`; `undefined` without that list. */
  paid: Omit<ReconciliationReport, 'paid'> | undefined;
}

const problemsKept = 100;

function hasError(reconciled: Reconciled): reconciled is ReconciliationReport['problems'][number] {
  return reconciled.error !== undefined;
}

/** The report of a list during its run. */
export class ReportBuilder {
  readonly report: ReconciliationReport = {
    processed: 0,
    duplicate: 0,
    unchanged: 0,
    pending: 0,
    unknown: 0,
    failed: 0,
    problems: [],
    oldestOpenMs: undefined,
    stopped: undefined,
    openStatuses: {},
    advice: undefined,
    cursor: undefined,
    queries: 0,
    durationMs: 0,
    paid: undefined,
  };
  readonly #statuses: OpenStatuses;
  #oldestOpenMs = Infinity;

  constructor(seemsFinal?: PayoutService['seemsFinal']) {
    this.#statuses = new OpenStatuses(seemsFinal);
  }

  /** The creation time of the oldest transfer that is not `processed`, `duplicate` or `unchanged`. */
  get oldestOpenAt(): Date | undefined {
    return this.#oldestOpenMs === Infinity ? undefined : new Date(this.#oldestOpenMs);
  }

  /** `createdMs` is in milliseconds since 1970, or NaN if the creation is not known. */
  add(reconciled: Reconciled, createdMs: number): void {
    const { report } = this;
    report[reconciled.result] += 1;
    if ('reason' in reconciled && reconciled.reason === 'not_final') {
      // A transfer that was paid is old. It may be open while its money is on its way back.
      this.#statuses.note(String(reconciled.status), reconciled.paid === true ? NaN : createdMs);
      report.openStatuses = this.#statuses.counts;
      report.advice = this.#statuses.advice;
    }
    if (hasError(reconciled) && report.problems.length < problemsKept) report.problems.push(reconciled);
    const isDone = ['processed', 'duplicate', 'unchanged'].includes(reconciled.result);
    // A time in the future is a mistake, such as microseconds, and NaN is none.
    if (isDone || !(createdMs <= Date.now())) return;
    this.#oldestOpenMs = Math.min(this.#oldestOpenMs, createdMs);
    const ageMs = Date.now() - createdMs;
    report.oldestOpenMs = Math.max(report.oldestOpenMs ?? ageMs, ageMs);
  }
}

const dayMs = 86_400_000;

/** How many statuses are counted. A service may write more than a word into a status. */
const mostStatuses = 20;

/** The statuses of the transfers that the service reports as open. */
class OpenStatuses {
  readonly #seemsFinal: PayoutService['seemsFinal'];
  readonly #counts = new Map<string, number>();
  readonly #seemFinal = new Set<string>();
  readonly #old = new Set<string>();

  constructor(seemsFinal: PayoutService['seemsFinal']) {
    this.#seemsFinal = seemsFinal;
  }

  /** `createdMs` is in milliseconds since 1970, or NaN. */
  note(status: string, createdMs: number): void {
    if (!this.#counts.has(status) && this.#counts.size === mostStatuses) return;
    this.#counts.set(status, (this.#counts.get(status) ?? 0) + 1);
    if (this.#seemsFinal?.(status) === true) this.#seemFinal.add(status);
    else if (Date.now() - createdMs > dayMs) this.#old.add(status);
  }

  /** The number of transfers by status. */
  get counts(): Record<string, number> {
    return Object.fromEntries(this.#counts);
  }

  /** Advice about statuses that may be final by another word; `undefined` if none is, and no open transfer is old. */
  get advice(): string | undefined {
    if (this.#seemFinal.size + this.#old.size === 0) return undefined;
    const list = (statuses: ReadonlySet<string>): string => [...statuses].join(', ');
    const facts = [
      ...(this.#seemFinal.size > 0 ? [`The service reports the status ${list(this.#seemFinal)}`] : []),
      ...(this.#old.size > 0 ? [`Transfers older than a day have the status ${list(this.#old)}`] : []),
    ];
    const advice = this.#seemFinal.size > 0 ? `${translateStatus} Otherwise contact` : 'Contact';
    return `${facts.join('. ')}. ${advice} the payout service.`;
  }
}
