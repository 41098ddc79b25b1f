import type { TransferCallbackOutcome } from 'transfer-callbacks';
import type { Status } from '../support/helpers/reversing.js';
import type { Command } from './network.js';
import { isReversalKey, type StoredRecord } from './model-redis.js';

/** The promises of the design, which hold in every schedule. */
export const promises = {
  ownClaim: 'No handler begins without its own live claim.',
  heldClaim: 'A claim is not released under its running handler.',
  keptLease: 'A lease is not given up while it lasts.',
  noOrphan: 'A claim lapses only if its process is stopped or the network is at fault.',
  absorbing: 'Success is absorbing: a handled record is not undone.',
  processed: '`processed` only after the own handler has succeeded.',
  duplicate: '`duplicate` only after a handler has succeeded.',
  refunded: 'A failure or a reversal is `duplicate` only after one of them was handled.',
  inProgress: '`in_progress` only after the whole wait.',
  inTime: 'Every delivery ends, and in time.',
  once: 'The handler succeeds twice only after a crash or a lapsed lease.',
  givenBackOnce: 'A payout is refunded twice only after a crash or a lapsed lease.',
  reported: 'A second success is reported as overlapped.',
  lastAttempt: 'No last attempt is wasted.',
  noRejection: 'No rejection is left unhandled.',
};

export type PromiseName = keyof typeof promises;

/**
 * The options in milliseconds of every receiver here. As by default the handler may take longer than the lease; a third
 * of the lease is a whole number.
 */
export const times = { leaseMs: 3_003, storeTimeoutMs: 1_000, handlerTimeoutMs: 4_500, retentionMs: 100_000_000 };

/** A call of the store has 50 ms more. A timer may run up to 1 ms late, and several follow one another. */
const timersMs = 55;

/** One delivery of the callback, as the world sees it. Its name is its token. */
export interface Delivery {
  readonly name: string;
  readonly status: Status;
  startedAt?: number;
  handlerBeganAt?: number;
  outcome?: TransferCallbackOutcome['outcome'] | 'crashed';
}

/** Watches a schedule, and keeps the first promise that it breaks. */
export class Watch {
  broken: string | undefined;
  /** The deliveries whose handlers have succeeded. */
  readonly successes: string[] = [];
  /** Those of them that were failures or reversals. */
  readonly #givenBack = new Set<string>();
  /** Those of them whose record has expired, or was forgotten. */
  readonly #forgotten = new Set<string>();
  /** Whether the success of a reversal or of a failure has a record of its own. */
  #isReversalRecorded = false;
  /** Handlers that began although a late success was recorded between the claim and its reply. */
  readonly overtakenStarts: string[] = [];
  readonly #inFlightWaitMs: number;
  /** Deliveries that lost their claim, or their process, before their success was recorded. */
  readonly #letGo = new Set<string>();
  readonly #recorded = new Set<string>();
  /** Tokens whose claims a late success of another delivery has replaced. */
  readonly #overtaken = new Set<string>();
  /** Tokens whose claims the process knows to be granted. */
  readonly #known = new Set<string>();
  /** Tokens that the network was at fault with. */
  readonly #faulted = new Set<string>();
  #isReported = false;
  #hasCrashed = false;

  constructor(inFlightWaitMs: number) {
    this.#inFlightWaitMs = inFlightWaitMs;
  }

  /** What the judgement of the rest of the schedule depends on. */
  fingerprint(): string {
    const sets = [this.#letGo, this.#forgotten, this.#recorded, this.#overtaken, this.#known, this.#faulted];
    const all = [this.successes, this.overtakenStarts, ...sets.map((set) => [...set].sort())];
    return `${all.map((names) => names.join()).join('/')}/${this.#isReversalRecorded}/${this.#isReported}/${this.#hasCrashed}`;
  }

  get isBroken(): boolean {
    return this.broken !== undefined;
  }

  break(promise: PromiseName, detail: string): void {
    this.broken ??= `${promises[promise]} ${detail}`;
  }

  handlerBegins({ name }: Delivery, records: readonly StoredRecord[]): void {
    if (records.some(({ value }) => value === `claimed ${name}`)) return;
    if (this.#overtaken.has(name)) this.overtakenStarts.push(name);
    else this.break('ownClaim', `${name}'s handler begins, and Redis holds ${show(...records)}.`);
  }

  handlerSucceeds({ name, status }: Delivery): void {
    this.successes.push(name);
    if (status !== 'SUCCESS') this.#givenBack.add(name);
    for (const [promise, names] of [
      ['once', this.#paid],
      ['givenBackOnce', [...this.#givenBack]],
    ] as const) {
      const held = names.filter((success) => !this.#letGo.has(success) && !this.#forgotten.has(success));
      if (held.length > 1) this.break(promise, `The handlers of ${held.join(' and ')} have succeeded.`);
    }
  }

  get #paid(): string[] {
    return this.successes.filter((name) => !this.#givenBack.has(name));
  }

  /** A handled record has expired, or was forgotten. That of the transfer may, if that of the reversal stays. */
  recordEnds(isReversal: boolean): void {
    const forgotten = !isReversal && this.#isReversalRecorded ? this.#paid : this.successes;
    for (const name of forgotten) this.#forgotten.add(name);
  }

  /** The receiver aborts the handler's signal because of a lost lease. */
  leaseIsGivenUp({ name }: Delivery, records: readonly StoredRecord[]): void {
    const tokens = records.map(claimToken);
    if (!tokens.some((token) => token !== undefined && toDelivery(token) === name && this.#known.has(token))) return;
    this.break('keptLease', `${name} gives up its lease, and Redis holds ${show(...records)}.`);
  }

  commandRan(
    { token, words }: Command,
    key: string,
    [before, after]: readonly [StoredRecord | undefined, StoredRecord | undefined],
    running: string[],
  ): void {
    const claim = claimToken(before);
    if (isReversalKey(key) && isHandled(after)) this.#isReversalRecorded = true;
    if (before !== undefined && isHandled(before) && !isHandled(after)) {
      this.break('absorbing', `Redis held ${show(before)}, and now holds ${show(after)}.`);
    }
    if (claim !== undefined && after === undefined && running.includes(claim)) {
      this.break('heldClaim', `${claim}'s handler is running, and its claim is released by ${words[0] ?? ''}.`);
    }
    // A claim of a handled record records nothing.
    if (token === undefined || after?.value.startsWith(`handled ${token} `) !== true) return;
    this.#recorded.add(toDelivery(token));
    if (claim !== undefined && toDelivery(claim) !== toDelivery(token)) this.#overtaken.add(claim);
  }

  /** The process reads a reply. */
  replyRead({ token, reply, words }: Command): void {
    if (token !== undefined && isClaim(words) && reply === 'OK') this.#known.add(token);
  }

  commandLost({ token }: Command): void {
    if (token !== undefined) this.#faulted.add(token);
  }

  /** A claim has lapsed. `isExcused`: its process cannot renew it, or a command for it is under way. */
  claimLapses(token: string, isExcused: boolean): void {
    const name = toDelivery(token);
    if (!this.#recorded.has(name)) this.#letGo.add(name);
    if (!isExcused && !this.#faulted.has(token)) this.break('noOrphan', `The claim of ${token} has lapsed.`);
  }

  processDies(names: string[]): void {
    this.#hasCrashed = true;
    for (const name of names) this.#letGo.add(name);
  }

  /** The receiver reports that a callback may have been handled twice. */
  overlapIsReported(): void {
    this.#isReported = true;
  }

  /** `isTimed`: its process was never held up. */
  deliveryEnds(delivery: Delivery, now: number, isTimed: boolean): void {
    const { name, status, outcome, startedAt = now, handlerBeganAt } = delivery;
    const hasSucceeded = this.successes.includes(name);
    if (outcome === 'processed' && !hasSucceeded) this.break('processed', `${name} is processed.`);
    if (outcome === 'duplicate' && this.successes.length === 0) this.break('duplicate', `${name} is a duplicate.`);
    if (outcome === 'duplicate' && status !== 'SUCCESS' && this.#givenBack.size === 0) {
      this.break('refunded', `${name} is a duplicate.`);
    }
    if (outcome === 'in_progress' && now - startedAt < this.#inFlightWaitMs) {
      this.break('inProgress', `${name} has waited for ${now - startedAt} ms.`);
    }
    if (!isTimed) return;
    const { storeTimeoutMs, handlerTimeoutMs } = times;
    const claimedMs = (handlerBeganAt ?? now) - startedAt;
    if (claimedMs > this.#inFlightWaitMs + storeTimeoutMs + timersMs) {
      this.break('inTime', `${name} took ${claimedMs} ms until its claim was decided.`);
    }
    const handledMs = now - (handlerBeganAt ?? now);
    if (handledMs > handlerTimeoutMs + storeTimeoutMs + timersMs) {
      this.break('inTime', `${name} took ${handledMs} ms from the begin of its handler.`);
    }
  }

  /** Nothing is left that could happen. */
  allIsQuiet(deliveries: readonly Delivery[]): void {
    for (const { name, startedAt, outcome } of deliveries) {
      if (startedAt !== undefined && outcome === undefined) this.break('inTime', `${name} never ends.`);
    }
    for (const names of [this.#paid, [...this.#givenBack]]) {
      const remembered = names.filter((success) => !this.#forgotten.has(success));
      if (remembered.length > 1 && !this.#isReported && !this.#hasCrashed) {
        this.break('reported', `The handlers of ${names.join(' and ')} have succeeded.`);
      }
    }
  }

  lastAttemptEnds({ name, outcome }: Delivery): void {
    if (outcome === 'processed' || outcome === 'duplicate') return;
    this.break(
      'lastAttempt',
      `One more attempt, ${name}, a lease later and on a healthy network, ends as ${outcome ?? 'nothing'}.`,
    );
  }
}

/** Whether a command claims a record. */
export function isClaim(words: readonly string[]): boolean {
  return words[0] === 'INSERT' || words.some((word) => word.toUpperCase() === 'NX');
}

/** The token of a claim, if that is what Redis holds. */
export function claimToken(record: StoredRecord | undefined): string | undefined {
  return record?.value.startsWith('claimed ') ? record.value.slice('claimed '.length) : undefined;
}

/** A delivery that claims again has further tokens: d1', d1''. */
export function toDelivery(token: string): string {
  return token.replace(/'+$/, '');
}

function isHandled(record: StoredRecord | undefined): boolean {
  return record?.value.startsWith('handled ') === true;
}

function show(...records: readonly (StoredRecord | undefined)[]): string {
  const values = records.map((record) => record?.value.split(' ', 2).join(' '));
  return (
    values
      .filter((value) => value !== undefined)
      .map((value) => `«${value}»`)
      .join(' and ') || 'nothing'
  );
}
