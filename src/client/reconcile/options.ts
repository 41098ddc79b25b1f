import { wholeNumber } from '../../lib/checks.js';
import { withSection } from '../../lib/errors.js';
import { messageOf } from '../../lib/text.js';
import { requireClient, requireSignal } from '../checks.js';
import type { TransferClient } from '../client.js';
import type { Trouble } from './rate.js';

/** Why a pass ended before its last transfer. */
export type Stopped =
  /** 10 failures of one kind in a row; `unavailable` also when the service asks for a pause of over 60 s. */
  | Trouble
  /** The receiver was closing. */
  | 'closing'
  /** `signal` aborted. */
  | 'aborted'
  /** `limit` was reached. */
  | 'limit'
  /** `pending` or `onProgress` threw. */
  | 'error';

/** Options of a pass over many transfers. */
export interface PassOptions {
  client: Pick<TransferClient, 'getTransaction'>;
  /**
   * How many transfers are processed at the same time, at most 10 000.
   * @default 4
   */
  concurrency?: number | undefined;
  /** How many queries may begin per second. Without it any number. The client's own retries are not counted. */
  queriesPerSecond?: number | undefined;
  /** How many transfers are taken at most. Without it all. */
  limit?: number | undefined;
  /**
   * Ends the pass: no further transfers are read, those being read stay pending, and running handlers finish. Pass
   * `AbortSignal.timeout(ms)` to end it after a time.
   */
  signal?: AbortSignal | undefined;
}

/** What is known of a pass itself. */
export interface PassReport<Item> {
  /** Why the pass ended before its last transfer; `undefined` if it did not. */
  stopped: Stopped | undefined;
  /**
   * The last transfer up to which all were read. Let your query for the next pass begin after it, and at the start
   * once a pass ends without `stopped`. Set when the pass has ended; `undefined` if there is none.
   */
  cursor: Item | undefined;
  /** How many transfers were queried. */
  queries: number;
  durationMs: number;
}

/** Rejects a pass that could not go on because your own code threw. The original error is the `cause`. */
export class ReconciliationError<Report = unknown> extends Error {
  readonly code: 'PENDING_FAILED' | 'ON_PROGRESS_FAILED';
  /** What the pass did before. */
  readonly report: Report;

  constructor(code: ReconciliationError['code'], report: Report, cause: unknown) {
    const option = code === 'PENDING_FAILED' ? 'pending' : 'onProgress';
    super(withSection(code, `\`${option}\` threw: ${messageOf(cause)}`), { cause });
    this.name = 'ReconciliationError';
    this.code = code;
    this.report = report;
  }

  /** For logs. Leaves out `cause`, which may be an error of a driver, with the parameters of a query in it. */
  toJSON(): object {
    const { name, code, message, report } = this;
    return { name, code, message, report };
  }
}

export const passOptionNames = ['client', 'concurrency', 'queriesPerSecond', 'limit', 'signal'];

/** Throws INVALID_ARGUMENT. */
export function checkPassOptions(options: PassOptions): void {
  const { client, concurrency, queriesPerSecond, limit, signal } = options;
  requireClient(client);
  // Each of them is a worker, which takes memory whether it has a transfer or not.
  if (concurrency !== undefined) wholeNumber('concurrency', concurrency, { min: 1, max: 10_000, example: 4 });
  if (queriesPerSecond !== undefined) wholeNumber('queriesPerSecond', queriesPerSecond, { min: 1, example: 10 });
  if (limit !== undefined) wholeNumber('limit', limit, { min: 1, example: 1_000 });
  requireSignal(signal);
}

export function emptyPassReport(): { stopped: undefined; cursor: undefined; queries: number; durationMs: number } {
  return { stopped: undefined, cursor: undefined, queries: 0, durationMs: 0 };
}
