import type { Budget } from './choice.js';
import type { Status } from '../support/helpers/reversing.js';
import { times } from './promises.js';

/** Which deliveries there are, and what may go wrong. */
export interface Situation {
  readonly title: string;
  readonly deliveries: readonly Arrival[];
  readonly budget: Partial<Budget>;
  /** Default 50. */
  readonly inFlightWaitMs?: number;
  /** Commands and replies may overtake one another. */
  readonly anyOrder?: boolean;
  /** The store undoes the writes of a handler with its claim, as a transactional one. */
  readonly isTransactional?: boolean;
  /** A process is held up only while the reply to its claim lies unread. */
  readonly holdsUpUnreadClaims?: boolean;
  /** Only this process is held up, and only while a handler of it runs. */
  readonly holdsUpHandlersOf?: 'A';
}

/** A delivery of the callback to a process. It may arrive at any time, unless something else is given. */
export interface Arrival {
  readonly process: 'A' | 'B';
  /** Default `SUCCESS`. */
  readonly status?: Status;
  readonly notBeforeMs?: number;
  /** It is the retry of the delivery before it: it arrives a lease later, if that one was not acknowledged. */
  readonly isRetry?: boolean;
}

const twoCopies = [{ process: 'A' }, { process: 'B' }] as const;
const inOneProcess = [{ process: 'A' }, { process: 'A' }] as const;
const attemptAndRetry = [{ process: 'A' }, { process: 'B', isRetry: true }] as const;
const afterTheLease = [{ process: 'A' }, { process: 'B', notBeforeMs: times.leaseMs + 1 }] as const;

export const calm: Situation = { title: 'two copies, and nothing goes wrong', deliveries: twoCopies, budget: {} };

const failingHandler: Situation = {
  title: 'two copies, a handler that fails, 1 delay',
  deliveries: twoCopies,
  budget: { failures: 1, delays: 1 },
};

export const networkFault: Situation = {
  title: 'two copies, a network fault, 1 delay',
  deliveries: twoCopies,
  budget: { networkFaults: 1, delays: 1 },
};

const copiesInOneProcess: Situation = {
  title: 'two copies in one process, a handler that fails, 2 delays',
  deliveries: inOneProcess,
  budget: { failures: 1, delays: 2 },
};

export const crash: Situation = {
  title: 'two copies, a process that dies, 1 delay',
  deliveries: twoCopies,
  budget: { crashes: 1, delays: 1 },
};

export const heldUpClaim: Situation = {
  title: 'a process held up with the reply to its claim unread, another delivery after the lease, 2 delays',
  deliveries: afterTheLease,
  inFlightWaitMs: 0,
  holdsUpUnreadClaims: true,
  budget: { holdUps: 1, delays: 2 },
};

export const heldUpHandler: Situation = {
  title: 'a process held up, a handler that fails, 2 delays',
  deliveries: [{ process: 'A' }],
  budget: { holdUps: 1, failures: 1, delays: 2 },
};

export const lateCommand: Situation = {
  title: 'two copies, a command that the client rejects and sends anyway, 1 delay',
  deliveries: twoCopies,
  budget: { lateCommands: 1, delays: 1 },
};

const success = { process: 'A', status: 'SUCCESS' } as const;
const failure = { process: 'B', status: 'FAILED' } as const;
const reversal = { process: 'B', status: 'REVERSED' } as const;

const failureAndReversal: Situation = {
  title: 'a failure and a reversal, a handler that fails',
  deliveries: [{ ...failure, process: 'A' }, reversal],
  budget: { failures: 1 },
};

const endedSuccessAndFailure: Situation = {
  title: 'a success, a reversal and a failure, a record that ends',
  deliveries: [success, { ...reversal, process: 'A' }, failure],
  budget: { recordEnds: 1 },
};

const deadReversal: Situation = {
  title: 'a reversal and a success, a process that dies',
  deliveries: [
    { ...reversal, process: 'A' },
    { ...success, process: 'B' },
  ],
  budget: { crashes: 1 },
};

export const lateSuccess: Situation = {
  title: 'a success whose handler is held up, two reversals after its lease, 1 delay',
  deliveries: [
    success,
    { ...reversal, notBeforeMs: times.leaseMs },
    { ...reversal, process: 'A', notBeforeMs: times.leaseMs },
  ],
  inFlightWaitMs: 0,
  holdsUpHandlersOf: 'A',
  budget: { holdUps: 1, delays: 1 },
};

export const endedInATransaction: Situation = {
  title: 'a success, a reversal and a failure on a transactional store, a record that ends',
  deliveries: [success, { ...reversal, process: 'A' }, failure],
  isTransactional: true,
  budget: { recordEnds: 1 },
};

export const reversalInATransaction: Situation = {
  title: 'a success and a reversal on a transactional store, a handler that fails',
  deliveries: [success, reversal],
  isTransactional: true,
  budget: { failures: 1 },
};

export const failureAndReversalInATransaction: Situation = {
  ...failureAndReversal,
  title: 'a failure and a reversal on a transactional store, a handler that fails',
  isTransactional: true,
};

/** Those that each run of the tests follows to their ends. */
export const everyRun: readonly Situation[] = [
  calm,
  failingHandler,
  networkFault,
  lateCommand,
  copiesInOneProcess,
  crash,
  heldUpClaim,
  heldUpHandler,
  failureAndReversal,
  endedSuccessAndFailure,
  deadReversal,
  endedInATransaction,
  reversalInATransaction,
  failureAndReversalInATransaction,
];

/** Those of them with one delay more, once a week: each takes five to ten times as long. */
export const weeklyRuns: readonly Situation[] = [
  {
    ...failingHandler,
    title: 'two copies, a handler that fails, 2 delays',
    budget: { failures: 1, delays: 2 },
  },
  {
    ...copiesInOneProcess,
    title: 'two copies in one process, a handler that fails, 3 delays',
    budget: { failures: 1, delays: 3 },
  },
];

/** Those that take minutes or hours: for `npm run schedules`. */
export const longRuns: readonly Situation[] = [
  ...weeklyRuns,
  lateSuccess,
  {
    title: 'a success, two reversals after its lease, a process held up, 1 delay',
    deliveries: lateSuccess.deliveries,
    inFlightWaitMs: 0,
    budget: { holdUps: 1, delays: 1 },
  },
  {
    title: 'a success that is held up, a failure and a reversal after its lease, 1 delay',
    deliveries: [
      success,
      { ...failure, notBeforeMs: times.leaseMs },
      { ...reversal, process: 'A', notBeforeMs: times.leaseMs },
    ],
    inFlightWaitMs: 0,
    budget: { holdUps: 1, delays: 1 },
  },
  {
    ...failureAndReversal,
    title: 'a failure and a reversal, a handler that fails, 1 delay',
    budget: { failures: 1, delays: 1 },
  },
  {
    ...endedInATransaction,
    title: 'a success, a reversal and a failure on a transactional store, a record that ends, 1 delay',
    // A claim of such a store may queue for as long as a call may take.
    inFlightWaitMs: 3 * times.storeTimeoutMs,
    budget: { recordEnds: 1, delays: 1 },
  },
  {
    ...endedInATransaction,
    title: 'a success and two reversals on a transactional store, a handler that fails, a record that ends',
    deliveries: [success, { ...reversal, process: 'A' }, reversal],
    budget: { recordEnds: 1, failures: 1 },
  },
  {
    ...endedInATransaction,
    title: 'a success, a reversal and a failure on a transactional store, a process that dies, a record that ends',
    budget: { recordEnds: 1, crashes: 1 },
  },
  {
    title: 'a success, two reversals, a record that ends',
    deliveries: [success, { ...reversal, process: 'A' }, reversal],
    budget: { recordEnds: 1 },
  },
  {
    title: 'two copies, 2 commands that the client rejects and sends anyway, a handler that fails, 2 delays',
    deliveries: twoCopies,
    budget: { lateCommands: 2, failures: 1, delays: 2 },
  },
  { title: 'two copies, a network fault, 2 delays', deliveries: twoCopies, budget: { networkFaults: 1, delays: 2 } },
  {
    title: 'two copies in one process, a handler that fails, a network fault, 3 delays',
    deliveries: inOneProcess,
    budget: { failures: 1, networkFaults: 1, delays: 3 },
  },
  { title: 'two copies, a process that dies, 3 delays', deliveries: twoCopies, budget: { crashes: 1, delays: 3 } },
  { title: 'two copies, a process held up, 3 delays', deliveries: twoCopies, budget: { holdUps: 1, delays: 3 } },
  {
    ...heldUpClaim,
    title: heldUpClaim.title.replace('2 delays', '6 delays'),
    budget: { holdUps: 1, delays: 6 },
  },
  {
    title: 'a process held up, another delivery while the first claims again, 3 delays',
    deliveries: [{ process: 'A' }, { process: 'B', notBeforeMs: times.leaseMs + 500 }],
    inFlightWaitMs: 0,
    budget: { holdUps: 1, delays: 3 },
  },
  {
    title: 'two copies, a handler that fails, 2 network faults, 1 delay',
    deliveries: twoCopies,
    budget: { failures: 1, networkFaults: 2, delays: 1 },
  },
  {
    title: 'attempt, retry and stray copy, a handler that fails, a network fault, a process that dies, 1 delay',
    deliveries: [...attemptAndRetry, { process: 'B' }],
    budget: { failures: 1, networkFaults: 1, crashes: 1, delays: 1 },
  },
  {
    title: 'three copies in two processes, a handler that fails, a network fault, 1 delay',
    deliveries: [...inOneProcess, { process: 'B' }],
    budget: { failures: 1, networkFaults: 1, delays: 1 },
  },
  {
    title: 'two copies, commands in any order, a handler that fails, a network fault, 2 delays',
    deliveries: twoCopies,
    anyOrder: true,
    budget: { failures: 1, networkFaults: 1, delays: 2 },
  },
  {
    title: 'attempt and retry, a network fault, 5 delays',
    deliveries: attemptAndRetry,
    budget: { networkFaults: 1, delays: 5 },
  },
];
