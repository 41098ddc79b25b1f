/** One thing that can happen next. */
export interface Choice {
  readonly take: () => void | Promise<void>;
  /** Describes it in a schedule, after it was taken. */
  readonly describe: () => string;
}

/** How often something may still happen in a schedule, beside what always can. */
export const noBudget = {
  /** Handlers that fail. */
  failures: 0,
  /** Commands or replies that the network loses, or a connection that breaks under them. */
  networkFaults: 0,
  /** Commands that the client gives up and sends anyway. */
  lateCommands: 0,
  /** Processes that die. */
  crashes: 0,
  /** Processes that stand still for a while. */
  holdUps: 0,
  /** Handled records that expire, or that a person forgets. */
  recordEnds: 0,
  /** How often time passes although something else could happen first. */
  delays: 0,
};

export type Budget = typeof noBudget;
