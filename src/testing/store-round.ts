import assert from 'node:assert/strict';
import type { CallbackStore, Claim, ClaimReply, ClaimRequest, StoreRecord } from '../core/store.js';
import { pause } from '../lib/deadline.js';

/** A lease or a record of this length does not end during a check. In milliseconds. */
export const longMs = 30_000;

/** The longest lease that a check waits for, in milliseconds. */
const longestLeaseMs = longMs / 2;

/** A check can measure a time if every call of the store took less than an eleventh of it. */
const slowestPart = 11;

/** A string of 255 characters, some of which are not ASCII. */
const externalId = 'payout 00001 é付😀"\\\''.padEnd(255, 'x');

/**
 * What a handler does through `tx`, for the checks of a transactional store.
 *
 * @example
 * const transaction: StoreTransaction<PoolClient> = {
 *   write: (tx, key) => tx.query('INSERT INTO writes (key) VALUES ($1)', [key]),
 *   count: async (key) => (await pool.query('SELECT FROM writes WHERE key = $1', [key])).rowCount ?? 0,
 * };
 */
export interface StoreTransaction<Tx> {
  /** Inserts one row for `key`, in a table without a unique index: a second row for the key must be possible. */
  write(tx: Tx, key: string): Promise<unknown>;
  /** Resolves with the number of rows for `key` that are committed, read on another connection. */
  count(key: string): Promise<number>;
  /** Sends a statement that fails. Without it no check shows what becomes of a handler that swallows a failure. */
  fail?(tx: Tx): Promise<unknown>;
  /** Sends ROLLBACK. Without it no check shows what becomes of a handler that ends its transaction. */
  rollback?(tx: Tx): Promise<unknown>;
  /**
   * Inserts `row` into a table with a unique index. Two transactions that insert the same two rows in opposite order
   * meet a deadlock. Without it no check shows what becomes of a handler that swallows one.
   */
  lock?(tx: Tx, row: string): Promise<unknown>;
}

/** What a check may change of a claim. */
type Changes = Partial<ClaimRequest & { key: string }>;

/** A check before it is bound to a store. */
export interface WrittenCheck {
  readonly title: string;
  /** How long a lease or record lasts that ends during the check, in milliseconds. Default: none ends. */
  readonly leaseMs?: number;
  /** What must be there for the check to run: a method or a property of the store, or a step of its transaction. */
  readonly needs?: 'read' | 'forget' | 'refunds' | 'claimsBoth' | keyof StoreTransaction<unknown>;
  readonly check: (round: Round) => Promise<void>;
}

/**
 * Runs a check. A failure counts only if each call of the store, and each pause, took a small part of `leaseMs`: a busy
 * machine can make a right store look wrong. Otherwise the check runs again, with a lease that fits what was measured.
 */
export async function runCheck(
  makeRound: (leaseMs: number) => Round,
  shortestLeaseMs: number,
  check: (round: Round) => Promise<void>,
): Promise<void> {
  for (let leaseMs = shortestLeaseMs; ;) {
    const round = makeRound(leaseMs);
    try {
      await check(round);
      return;
    } catch (error) {
      const measurableMs = round.slowestMs * slowestPart;
      if (measurableMs <= leaseMs || leaseMs >= longestLeaseMs) throw error;
      leaseMs = Math.min(longestLeaseMs, Math.ceil(1.5 * measurableMs));
    } finally {
      await round.end();
    }
  }
}

/** One run of a check, on a callback that no other run uses. Measures how long the calls of the store take. */
export class Round {
  /** The length of the leases and records that end during the check, in milliseconds. */
  readonly leaseMs: number;
  readonly key = `contract-${crypto.randomUUID()}`;
  readonly transactional: boolean;
  /** The longest delay so far, in milliseconds: of a call of the store, or of a pause beyond its length. */
  slowestMs = 0;
  readonly #store: CallbackStore<unknown>;
  readonly #other: CallbackStore<unknown>;
  readonly #transaction: StoreTransaction<unknown> | undefined;
  readonly #storesByName = new Map<string, CallbackStore<unknown>>();
  readonly #tokenPrefix = `${new Date().toISOString()}/${'host'.padEnd(255, '-x')}/4194304/`.padEnd(320, '0');
  readonly #claims = new Set<Claim<unknown>>();

  constructor(
    store: CallbackStore<unknown>,
    other: CallbackStore<unknown>,
    transaction: StoreTransaction<unknown> | undefined,
    leaseMs: number,
  ) {
    this.#store = store;
    this.#other = other;
    this.#transaction = transaction;
    this.leaseMs = leaseMs;
    this.transactional = store.transactional === true;
  }

  /** Returns a token as long as one can get. The tokens of one round differ in their last characters only. */
  token(name: string): string {
    return this.#tokenPrefix + name;
  }

  /** Claims the callback, by default for a long time. */
  async claim(name: string, { key = this.key, ...changes }: Changes = {}): Promise<ClaimReply<unknown>> {
    const store = this.#storeFor(name);
    const facts = { fingerprint: `facts of ${name}`, event: 'transfer.success', externalId };
    const request = { token: this.token(name), ...facts, leaseMs: longMs, retentionMs: longMs, ...changes };
    const reply = await this.measure(() => store.claim(key, request)).catch((error: unknown) => {
      throw toRejection(key, request, error);
    });
    if (reply.state !== 'claimed') return reply;
    const { claim } = reply;
    this.#claims.add(claim);
    return {
      state: 'claimed',
      claim: {
        get tx() {
          return claim.tx;
        },
        get ended() {
          return claim.ended;
        },
        renew: () => this.measure(() => claim.renew()),
        settle: async () => {
          const handled = await this.measure(() => claim.settle());
          this.#claims.delete(claim);
          return handled;
        },
        release: () => this.measure(() => claim.release()),
      },
    };
  }

  /** Claims the callback, which must be granted. */
  async hold(token: string, changes?: Changes): Promise<Claim<unknown>> {
    const reply = await this.claim(token, changes);
    assert.ok(reply.state === 'claimed', `a free callback was not granted: it is ${reply.state}`);
    return reply.claim;
  }

  /** Claims the callback, which may be taken. */
  async tryHold(token: string, changes?: Changes): Promise<Claim<unknown> | undefined> {
    const reply = await this.claim(token, changes);
    return reply.state === 'claimed' ? reply.claim : undefined;
  }

  claimFifty(changes?: Changes): Promise<ClaimReply<unknown>[]> {
    return Promise.all(Array.from({ length: 50 }, (_, caller) => this.claim(`caller-${caller}`, changes)));
  }

  /** Claims the callback, which must be handled with the facts of `by`. */
  async assertHandled(name: string, by: string, message?: string, changes?: Changes): Promise<void> {
    assert.deepEqual(await this.claim(name, changes), { state: 'handled', fingerprint: `facts of ${by}` }, message);
  }

  /** Claims the callback fifty times concurrently: at most one claim may be granted. */
  async tryHoldOfFifty(): Promise<Claim<unknown> | undefined> {
    const replies = await this.claimFifty();
    const claims = replies.flatMap((reply) => (reply.state === 'claimed' ? [reply.claim] : []));
    assert.ok(claims.length <= 1, `${claims.length} of 50 concurrent claims were granted`);
    return claims[0];
  }

  /**
   * Notes the beginning of a lease of `leaseMs`, or of another time that ends without a call. It may last `slackMs`
   * longer.
   */
  begin(name: string, lengthMs = this.leaseMs, slackMs = Math.max(1_000, lengthMs / 2)) {
    return { name, lengthMs, slackMs, beganAt: performance.now() };
  }

  /** Repeats a claim until it is granted, which must be soon after the period has ended. */
  async holdAfter({ name, lengthMs, slackMs }: Period, tryHold = () => this.tryHold('next')): Promise<Claim<unknown>> {
    const giveUpAt = performance.now() + lengthMs + slackMs;
    for (;;) {
      const askedAt = performance.now();
      const claim = await tryHold();
      // Even if the claim was granted: a process that stood still does not know when the period has ended.
      assert.ok(
        askedAt < giveUpAt,
        `${name} of ${lengthMs} ms never ended: no claim was granted until ${slackMs} ms later`,
      );
      if (claim !== undefined) return claim;
      await this.pause(Math.max(5, lengthMs / 50));
    }
  }

  /** As `holdAfter`, and asserts that the period has lasted its whole length. */
  async holdAfterWhole(period: Period): Promise<Claim<unknown>> {
    const { name, lengthMs, beganAt } = period;
    let refusedAt = beganAt;
    const next = await this.holdAfter(period, async () => {
      const askedAt = performance.now();
      const claim = await this.tryHold('next');
      if (claim === undefined) refusedAt = askedAt;
      return claim;
    });
    const lastedMs = Math.ceil(performance.now() - beganAt);
    // Stores round their clocks, and servers correct theirs.
    assert.ok(lastedMs >= 0.95 * lengthMs, `${name} of ${lengthMs} ms lasted only ${lastedMs} ms`);
    // A slow reply does not tell when the period has ended: a refusal near the end does.
    assert.ok(refusedAt - beganAt >= 0.7 * lengthMs, `no claim was refused near the end of ${name} of ${lengthMs} ms`);
    return next;
  }

  /** Lets the lease of one holder lapse, and another take the callback over. */
  async takeOver(): Promise<{ late: Claim<unknown>; next: Claim<unknown> }> {
    const late = await this.hold('late', { leaseMs: this.leaseMs });
    return { late, next: await this.holdAfter(this.begin('a lease')) };
  }

  /** Reads the record of the callback, or of its refund. */
  async read(record?: 'reversal'): Promise<StoreRecord | undefined> {
    return this.measure(async () => this.#other.read?.(this.key, record));
  }

  /** Forgets the callback, by default as it was handled by `name`. */
  async forget(name: string, fingerprint = `facts of ${name}`, record?: 'reversal'): Promise<boolean | undefined> {
    return this.measure(async () => this.#other.forget?.(this.key, fingerprint, record));
  }

  /** Writes one row for the callback, as its handler does. */
  async write({ tx }: Claim<unknown>, key = this.key): Promise<void> {
    await this.measure(async () => this.#transaction?.write(tx, key));
  }

  /** Counts the rows of the callback that are committed. */
  async count(key = this.key): Promise<number | undefined> {
    return this.measure(async () => this.#transaction?.count(key));
  }

  /** Takes one of the steps that a handler may take beside its write. */
  async step(step: 'fail' | 'rollback', { tx }: Claim<unknown>): Promise<void> {
    await this.#transaction?.[step]?.(tx);
  }

  async lock({ tx }: Claim<unknown>, row: string): Promise<void> {
    await this.#transaction?.lock?.(tx, row);
  }

  async pause(ms: number): Promise<void> {
    await this.measure(() => pause(ms), ms);
  }

  /** Frees what the check has left claimed. */
  async end(): Promise<void> {
    await Promise.allSettled([...this.#claims].map(async (claim) => claim.release()));
  }

  /** Returns one of the two objects in turn, and for a name always the same: a token belongs to one process. */
  #storeFor(name: string): CallbackStore<unknown> {
    const isEven = this.#storesByName.size % 2 === 0;
    const store = this.#storesByName.get(name) ?? (isEven ? this.#store : this.#other);
    this.#storesByName.set(name, store);
    return store;
  }

  /** Makes one call of the store, and remembers how long it took beyond `expectedMs`. */
  async measure<T>(call: () => Promise<T>, expectedMs = 0): Promise<T> {
    const startedAt = performance.now();
    try {
      return await call();
    } finally {
      this.slowestMs = Math.max(this.slowestMs, performance.now() - startedAt - expectedMs);
    }
  }
}

/** Makes the error for a claim that was rejected: a database may not tell which string it could not store. */
function toRejection(key: string, { token, fingerprint, externalId = '' }: ClaimRequest, cause: unknown): Error {
  return new Error(
    `a claim was rejected with a key of ${key.length}, a token of ${token.length}, a fingerprint of ` +
      `${fingerprint.length} and an externalId of ${externalId.length} characters: ${String(cause)}`,
    { cause },
  );
}

/** A lease or a handled record, which ends without a call. */
type Period = ReturnType<Round['begin']>;
