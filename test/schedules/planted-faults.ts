import type { CallbackStore, Claim } from 'transfer-callbacks';
import type { Connection } from './network.js';
import type { Fault } from './process.js';
import { times, type PromiseName } from './promises.js';
import { calm, crash, heldUpClaim, networkFault, type Situation } from './situations.js';

/** A fault, where it shows, and the promise that it breaks. */
export interface PlantedFault {
  readonly title: string;
  readonly fault: Fault;
  readonly situation: Situation;
  readonly promise: PromiseName;
}

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
    fault: { store: (store) => withLease(store, () => ({ renew: () => Promise.resolve(true) })) },
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
];

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

/** `store` with leases whose methods are partly replaced. */
function withLease(store: CallbackStore, change: (claim: Claim) => Partial<Claim>): CallbackStore {
  return {
    async claim(key, request) {
      const reply = await store.claim(key, request);
      return reply.state === 'claimed' ? { ...reply, claim: { ...reply.claim, ...change(reply.claim) } } : reply;
    },
  };
}
