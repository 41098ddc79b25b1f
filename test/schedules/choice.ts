/** One thing that can happen next. */
export interface Choice {
  readonly take: () => void | Promise<void>;
  /** Describes it in a schedule, after it was taken. */
  readonly describe: () => string;
}

/** How often something may still happen in a schedule, beside what always can. */
export interface Budget {
  /** Handlers that fail. */
  failures: number;
  /** Commands or replies that the network loses, or a connection that breaks under them. */
  networkFaults: number;
  /** Commands that the client gives up and sends anyway. */
  lateCommands: number;
  /** Processes that die. */
  crashes: number;
  /** Processes that stand still for a while. */
  holdUps: number;
  /** Handled records that expire, or that a person forgets. */
  recordEnds: number;
  /** How often time passes although something else could happen first. */
  delays: number;
}

export const noBudget: Budget = {
  failures: 0,
  networkFaults: 0,
  lateCommands: 0,
  crashes: 0,
  holdUps: 0,
  recordEnds: 0,
  delays: 0,
};
