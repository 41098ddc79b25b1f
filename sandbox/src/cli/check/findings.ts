import type { FinalStatus } from './commands.js';

/** What is known of a play or a row: each is one or more sentences, and the first of the first four is the verdict. */
export interface Findings {
  /** What a right endpoint does not do, and what it costs. */
  readonly wrong?: string | undefined;
  /** Why there is no verdict, although it was played. */
  readonly open?: string | undefined;
  /** What no document demands. */
  readonly less?: string | undefined;
  /** Why nothing is known. */
  readonly unseen?: string | undefined;
  readonly note?: string | undefined;
  /** What was counted, by status; `undefined` if it was not counted whole. */
  readonly numbers?: Numbers | undefined;
  /** The one of them that the row shows. */
  readonly times?: number | undefined;
}

export type Numbers = ReadonlyMap<FinalStatus, number>;
