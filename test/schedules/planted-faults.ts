import type { CallbackStore, Claim } from 'transfer-callbacks';
import { storeWith } from '../core/support.js';
import type { Connection } from './network.js';
import type { Fault } from './process.js';
import { times, type PromiseName } from './promises.js';
import {
  calm,
  crash,
  endedInATransaction,
  failureAndReversalInATransaction,
  heldUpClaim,
  lateSuccess,
  networkFault,
  reversalInATransaction,
  type Situation,
} from './situations.js';

/** A fault, where it shows, and the promise that it breaks. */
export interface PlantedFault {
  readonly title: string;
  readonly fault: Fault;
  readonly situation: Situation;
  readonly promise: PromiseName;
  /**
   * A schedule that breaks the promise, as the beginnings of its steps. Between them happens what can happen first, and
   * so it does at the end. Where there is one, no search is made.
   */
  readonly schedule?: readonly string[];
  /** Its search takes half a minute: once a week. */
  readonly isLong?: boolean;
}

/** The steps of the commands of a process. */
function does(process: string, ...commands: readonly string[]): readonly string[] {
  return commands.flatMap((command) => [
    `the store runs ${process}'s ${command}`,
    `${process} reads the reply to ${command}`,
  ]);
}

const paid = [
  'd1 arrives',
  ...does('A', 'SNAPSHOT transfer', 'INSERT transfer'),
  "d1's handler succeeds",
  ...does('A', 'COMMIT transfer'),
];

/** What others got wrong before, each planted around the real receiver, store and client. */
export const plantedFaults: readonly PlantedFault[] = [
  {
    title: 'a receiver that takes `in_progress` for `duplicate`',
    fault: {
      receive: (receive) => async (callback, options) => {
        const outcome = await receive(callback, options);
        return outcome.outcome === 'in_progress' ? { ...outcome, outcome: 'duplicate' } : outcome;
      },
    },
    situation: withDelays(2),
    promise: 'duplicate',
  },
  {
    title: 'a receiver that runs the handler without a claim when the wait is over',
    fault: {
      receive: (receive, handle) => async (callback, options) => {
        const outcome = await receive(callback, options);
        if (outcome.outcome !== 'in_progress') return outcome;
        await handle(callback, { source: options?.source ?? '' });
        return { ...outcome, outcome: 'processed', overlapped: false };
      },
    },
    situation: withDelays(2),
    promise: 'ownClaim',
  },
  {
    title: 'a receiver that takes a failed settling for a failed handler',
    // So it treats the settling of a transactional store, which fails together with what the handler has written.
    fault: { store: (store) => ({ ...store, transactional: true }) },
    // A claim of such a store may queue for as long as a call may take.
    situation: { ...networkFault, inFlightWaitMs: times.storeTimeoutMs },
    promise: 'once',
  },
  {
    title: 'a receiver that trusts a claim whose reply it reads late',
    fault: { store: (store) => storeWith({ granted: () => ({ renew: () => Promise.resolve(true) }) }, store) },
    situation: heldUpClaim,
    promise: 'ownClaim',
  },
  {
    title: 'a release that does not compare the token',
    fault: { client: (client) => ({ call: (...words) => client.call(...withoutComparison(words, 'DEL')) }) },
    situation: { ...calm, budget: { failures: 1, networkFaults: 1 } },
    promise: 'heldClaim',
  },
  {
    title: 'a renewal that does not compare the token',
    fault: { client: (client) => ({ call: (...words) => client.call(...withoutComparison(words, 'PEXPIRE')) }) },
    situation: { ...withDelays(2), deliveries: [{ process: 'A' }, { process: 'B', notBeforeMs: 500 }] },
    promise: 'absorbing',
  },
  {
    title: 'a settling that does not replace the claim',
    fault: {
      client: (client) => ({
        call: (...words) =>
          client.call(...words.map((word) => (isWord(word, 'GET') && words.length > 3 ? 'NX' : word))),
      }),
    },
    situation: calm,
    promise: 'noOrphan',
  },
  {
    title: 'a claim without an expiry',
    fault: {
      client: (client) => ({
        call: (...words) => client.call(...(words.some((word) => isWord(word, 'NX')) ? words.toSpliced(3, 2) : words)),
      }),
    },
    situation: crash,
    promise: 'lastAttempt',
  },
  {
    title: 'a store that locks one of two records',
    fault: { sql: 'one lock' },
    situation: endedInATransaction,
    promise: 'givenBackOnce',
    schedule: [
      ...paid,
      'd2 arrives',
      ...does('A', 'SNAPSHOT both', 'INSERT both', 'LOOK both', 'SNAPSHOT reversal', 'INSERT reversal'),
      'the record of the transfer expires',
      'd3 arrives',
      ...does('B', 'SNAPSHOT both', 'INSERT both'),
      "d3's handler succeeds",
      "d2's handler succeeds",
    ],
  },
  {
    title: 'a store that inserts one of two rows',
    fault: { sql: 'one row' },
    situation: endedInATransaction,
    promise: 'givenBackOnce',
    schedule: [
      ...paid,
      'd2 arrives',
      ...does('A', 'SNAPSHOT both', 'INSERT both', 'LOOK both'),
      'the record of the transfer expires',
      'd3 arrives',
      ...does('B', 'SNAPSHOT both', 'INSERT both'),
      "d3's handler succeeds",
      ...does('B', 'COMMIT both'),
      ...does('A', 'SNAPSHOT reversal', 'INSERT reversal'),
      "d2's handler succeeds",
    ],
  },
  {
    title: 'a store that commits one of two rows if the other one is in the way',
    fault: { sql: 'commits a part' },
    situation: reversalInATransaction,
    promise: 'refunded',
    schedule: [
      'd1 arrives',
      ...does('A', 'SNAPSHOT transfer', 'INSERT transfer'),
      "d1's handler succeeds",
      'd2 arrives',
      ...does('B', 'SNAPSHOT both'),
      ...does('A', 'COMMIT transfer'),
      ...does('B', 'INSERT both', 'LOOK both'),
    ],
  },
  {
    title: 'a store that looks before it has the locks',
    fault: { sql: 'looks first' },
    situation: failureAndReversalInATransaction,
    promise: 'givenBackOnce',
    schedule: [
      'd1 arrives',
      ...does('A', 'LOOK both', 'SNAPSHOT both'),
      'd2 arrives',
      ...does('B', 'LOOK both', 'SNAPSHOT both', 'INSERT both'),
      "d2's handler succeeds",
      ...does('B', 'COMMIT both'),
      ...does('A', 'INSERT both'),
      "d1's handler succeeds",
    ],
  },
  {
    title: 'a reversal before the success that leaves no record of its own',
    fault: {
      store: (store) =>
        storeWith({ granted: (claim, { record }) => (record === 'reversal' ? forgetting(claim) : {}) }, store),
    },
    situation: lateSuccess,
    promise: 'lastAttempt',
    isLong: true,
  },
  {
    title: 'a reversal before the success that claims its own record only when it is handled',
    fault: { store: claimLate },
    situation: lateSuccess,
    promise: 'ownClaim',
    isLong: true,
  },
];

/** Leaves no record of what was handled. */
function forgetting(claim: Claim): Partial<Claim> {
  return { settle: () => claim.release().then(() => ({ overlapped: false })) };
}

function withDelays(delays: number): Situation {
  return { ...calm, budget: { delays } };
}

type Words = Parameters<Connection['client']['call']>;

/** The command that a script calls after it has compared the token, without the comparison. */
function withoutComparison(words: Words, call: 'DEL' | 'PEXPIRE'): Words {
  const [name, , , key, , ms] = words;
  const isRenewal = ms !== undefined;
  if (key === undefined || !isWord(name ?? '', 'EVAL') || isRenewal !== (call === 'PEXPIRE')) return words;
  return isRenewal ? [call, key, ms] : [call, key];
}

function isWord(word: string | number, expected: string): boolean {
  return String(word).toUpperCase() === expected;
}

/** `store` that claims what was given back only when that is handled, unless the transfer has succeeded. */
function claimLate(store: CallbackStore): CallbackStore {
  return {
    ...store,
    async claim(key, request) {
      const isBefore = request.record === 'reversal' && (await store.read?.(key))?.state !== 'handled';
      if (!isBefore) return store.claim(key, request);
      const settle = async () => {
        const reply = await store.claim(key, request);
        return reply.state === 'claimed' ? reply.claim.settle() : { overlapped: false };
      };
      const claim = { tx: undefined, settle, renew: () => Promise.resolve(true), release: () => Promise.resolve() };
      return { state: 'claimed', claim };
    },
  };
}
