import type { AttemptResponse } from '../../attempt/attempt.js';
import type { Transfer } from './commands.js';
import type { Play, Row, Step } from './rows.js';

/** What decides about a row, in this order, and what is only said. */
export const kinds = ['wrong', 'open', 'less', 'unseen', 'note'] as const;

/**
 * What is known of a play or a row, in sentences. `wrong`: a right endpoint does not do this, and what it costs.
 * `open`: there is no verdict, although it was played. `less`: no document demands otherwise. `unseen`: nothing is
 * known.
 */
export type Finding = readonly [kind: (typeof kinds)[number], text: string];

/** A step, and the responses to it. */
export interface Sent {
  readonly step: Step;
  readonly responses: readonly AttemptResponse[];
  /** Whether it was still refused when there was no reason left. */
  readonly isFinal?: boolean;
  readonly findings?: readonly Finding[];
}

/** What was sent of a transfer, and why the rest was not. */
export interface PlayedPlay {
  readonly play: Play;
  readonly transfer: Transfer;
  readonly sent: readonly Sent[];
  readonly unseen?: string | undefined;
}

/** A row that was played, and is not judged yet. */
export interface Played {
  readonly row: Row;
  readonly plays: readonly PlayedPlay[];
  /** What is known beside the responses and the bookings. */
  readonly findings: readonly Finding[];
}
