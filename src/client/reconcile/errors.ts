import { withSection } from '../../lib/errors.js';
import { describeIssues } from '../../lib/standard-schema.js';
import { messageOf } from '../../lib/text.js';
import type { TransferCallbackOutcome } from '../../core/outcomes.js';
import { TransferClientError } from '../errors.js';
import { ListRepeats } from './list.js';
import type { NotHandled, ReconciliationReport } from './report.js';

/**
 * Rejects a run that could not go on because your own code threw, or because a list has no end. The original error is
 * the `cause`.
 *
 * @example
 * try {
 *   await reconcileTransfers({ receiver, pending });
 * } catch (error) {
 *   console.error((error as ReconciliationError).report.cursor);
 * }
 */
export class ReconciliationError extends Error {
  readonly code: 'PENDING_FAILED' | 'PAID_FAILED' | 'ON_PROGRESS_FAILED';
  /** What the run did before. */
  readonly report: ReconciliationReport;

  constructor(code: ReconciliationError['code'], report: ReconciliationReport, cause: unknown) {
    const why = cause instanceof ListRepeats ? cause.message : `\`${options[code]}\` threw: ${messageOf(cause)}`;
    super(withSection(code, why), { cause });
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

const options = { PENDING_FAILED: 'pending', PAID_FAILED: 'paid', ON_PROGRESS_FAILED: 'onProgress' } as const;

type Unhandled = Exclude<TransferCallbackOutcome, { outcome: 'processed' | 'duplicate' | 'closing' }>;

/** Describes why the receiver did not handle a final transfer. */
export function describeUnhandled(ended: Unhandled): { error: TransferClientError } & Partial<NotHandled> {
  const { outcome } = ended;
  const cause = 'error' in ended ? ended.error : undefined;
  const notHandled = (why: string): TransferClientError =>
    new TransferClientError('NOT_HANDLED', `The receiver ended with ${outcome}${why}.`, { cause });
  if (outcome === 'invalid') {
    const { issues } = ended;
    return { outcome, issues, error: notHandled(`: ${describeIssues(issues)}`) };
  }
  if (outcome === 'conflict') {
    const { recorded, received } = ended;
    const why = `: handled before with ${JSON.stringify(recorded)}, now ${JSON.stringify(received)}`;
    return { outcome, recorded, received, error: notHandled(why) };
  }
  return { outcome, error: notHandled(cause === undefined ? '' : `: ${messageOf(cause)}`) };
}
