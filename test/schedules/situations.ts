import type { Budget } from './choice.js';
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
  /** A process is held up only while the reply to its claim lies unread. */
  readonly holdsUpUnreadClaims?: boolean;
}

/** A delivery of the callback to a process. It may arrive at any time, unless something else is given. */
export interface Arrival {
  readonly process: 'A' | 'B';
  readonly notBeforeMs?: number;
  /** It is the retry of the delivery before it: it arrives a lease later, if that one was not acknowledged. */
  readonly isRetry?: boolean;
}

const twoCopies = [{ process: 'A' }, { process: 'B' }] as const;
const inOneProcess = [{ process: 'A' }, { process: 'A' }] as const;
const attemptAndRetry = [{ process: 'A' }, { process: 'B', isRetry: true }] as const;
const afterTheLease = [{ process: 'A' }, { process: 'B', notBeforeMs: times.leaseMs + 1 }] as const;

export const calm: Situation = { title: 'two copies, and nothing goes wrong', deliveries: twoCopies, budget: {} };

export const failingHandler: Situation = {
  title: 'two copies, a handler that fails, 2 delays',
  deliveries: twoCopies,
  budget: { failures: 1, delays: 2 },
};

export const networkFault: Situation = {
  title: 'two copies, a network fault, 1 delay',
  deliveries: twoCopies,
  budget: { networkFaults: 1, delays: 1 },
};

export const copiesInOneProcess: Situation = {
  title: 'two copies in one process, a handler that fails, 3 delays',
  deliveries: inOneProcess,
  budget: { failures: 1, delays: 3 },
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
];

/** Those that take minutes or hours: for `npm run schedules`. */
export const longRuns: readonly Situation[] = [
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
