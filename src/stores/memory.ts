import { onlyKnownOptions, wholeNumber } from '../lib/checks.js';
import { PassingEntries } from '../lib/passing-entries.js';
import { copyString } from '../lib/text.js';
import { describeHolder } from '../core/delivery.js';
import type { CallbackStore, Claim, ClaimReply, ClaimRequest, StoreRecord } from '../core/store.js';
import { toRecordKey } from '../core/callback.js';

/** Options of `memoryStore`. */
export interface MemoryStoreOptions {
  /**
   * How many handled callbacks are remembered, at 240 to 280 bytes each. Beyond that, or beyond 1 000 characters for
   * each of them, the oldest is forgotten early, and a process warning reports that once.
   * @default 100_000
   */
  maxEntries?: number | undefined;
}

interface Holder {
  readonly key: string;
  readonly token: string;
  readonly fingerprint: string;
  expiresAt: number;
}

interface HandledRecord {
  readonly fingerprint: string;
  readonly expiresAt: number;
}

/** Facts may be as long as a body. So many characters of keys and facts are kept for each of `maxEntries`. */
const charactersPerEntry = 1_000;

/** How many entries one call forgets at most. A million in one call took over half a second. */
const mostForgotten = 100;

/**
 * Keeps claims in this process: for development, for tests, and for an app that runs as one process and may forget
 * at a restart. Throws INVALID_ARGUMENT.
 *
 * @example
 * const router = transferCallbackRouter({ store: memoryStore(), onSuccess, onFailed });
 */
export function memoryStore(options: MemoryStoreOptions = {}): Required<Omit<CallbackStore, 'check'>> {
  onlyKnownOptions(options, ['maxEntries']);
  const { maxEntries = 100_000 } = options;
  const table = new Table(wholeNumber('maxEntries', maxEntries, { min: 1, example: 100_000 }));
  return {
    transactional: false,
    claimsBoth: false,
    processLocal: true,
    claim: (key, request) =>
      request.record === undefined
        ? Promise.resolve(table.claim(key, request))
        : toRecordKey(key, 'reversal').then((id) => table.claim(id, request)),
    read: async (key, record) => table.read(await toRecordKey(key, record)),
    forget: async (key, fingerprint, record) => table.forget(await toRecordKey(key, record), fingerprint),
  };
}

class Table {
  /** The claims that were neither settled nor released, lapsed ones too. */
  readonly #claims = new PassingEntries<Holder>();
  /** In the order they were handled. */
  readonly #handled = new Map<string, HandledRecord>();
  /** Visits each record once: a new iterator would pass over all that was deleted, for which V8 keeps a place. */
  #unvisited = this.#handled.entries();
  /** The record that was visited last, unless it was forgotten. */
  #oldest: [string, HandledRecord] | undefined;
  readonly #maxEntries: number;
  /** How many characters the keys and fingerprints in `#handled` have. */
  #characters = 0;
  #hasWarned = false;

  constructor(maxEntries: number) {
    this.#maxEntries = maxEntries;
  }

  claim(key: string, { token, fingerprint, leaseMs, retentionMs }: ClaimRequest): ClaimReply {
    const at = now();
    const handled = this.#findHandled(key, at);
    if (handled !== undefined) return { state: 'handled', fingerprint: handled.fingerprint };
    let claim = this.#claims.get(key);
    // The same claim, sent twice, is one, even if it has lapsed meanwhile: the first of its claims must release and
    // settle it.
    if (claim?.token !== token) {
      if (claim !== undefined && claim.expiresAt > at) return { state: 'in_progress' };
      claim = { key, token, fingerprint, expiresAt: 0 };
      this.#claims.set(key, claim);
    }
    claim.expiresAt = at + leaseMs;
    return { state: 'claimed', claim: toClaim(this, claim, leaseMs, retentionMs) };
  }

  /** Returns whether the lease is still held, and lengthens it if so. */
  renew(claim: Holder, leaseMs: number): boolean {
    const at = now();
    if (!this.#isHeld(claim, at)) return false;
    claim.expiresAt = at + leaseMs;
    return true;
  }

  /** Records the success. Returns whether the lease had ended before. */
  settle(claim: Holder, retentionMs: number): boolean {
    const at = now();
    const { key, fingerprint } = claim;
    const overlapped = !this.#isHeld(claim, at);
    this.#claims.delete(key);
    // Otherwise the record would keep its old place in the order.
    this.#remove(key);
    this.#handled.set(copyString(key), { fingerprint, expiresAt: at + retentionMs });
    this.#characters += key.length + fingerprint.length;
    this.#forgetOld(at);
    return overlapped;
  }

  release(claim: Holder): void {
    if (this.#claims.get(claim.key) === claim) this.#claims.delete(claim.key);
  }

  read(key: string): StoreRecord {
    const at = now();
    const handled = this.#findHandled(key, at);
    if (handled !== undefined) {
      const { fingerprint, expiresAt } = handled;
      return { state: 'handled', fingerprint, expiresAt: new Date(Date.now() + expiresAt - at) };
    }
    const claim = this.#claims.get(key);
    if (claim === undefined || claim.expiresAt <= at) return { state: 'free' };
    const { token, expiresAt } = claim;
    return { state: 'claimed', delivery: token, ...describeHolder(token), leaseLeftMs: expiresAt - at };
  }

  forget(key: string, fingerprint: string): boolean {
    return this.#findHandled(key, now())?.fingerprint === fingerprint && this.#remove(key);
  }

  /** Returns whether there was a record. */
  #remove(key: string): boolean {
    const record = this.#handled.get(key);
    if (record !== undefined) this.#characters -= key.length + record.fingerprint.length;
    return this.#handled.delete(key);
  }

  /** The latest record is always kept. */
  #isFull(): boolean {
    const { size } = this.#handled;
    return size > this.#maxEntries || (size > 1 && this.#characters > charactersPerEntry * this.#maxEntries);
  }

  #findHandled(key: string, at: number): HandledRecord | undefined {
    const record = this.#handled.get(key);
    return record !== undefined && record.expiresAt > at ? record : undefined;
  }

  #isHeld(claim: Holder, at: number): boolean {
    return this.#claims.get(claim.key) === claim && claim.expiresAt > at;
  }

  /**
   * Forgets what has expired, and the oldest beyond `maxEntries`. At most 100 at a time, so that no delivery is
   * blocked.
   */
  #forgetOld(at: number): void {
    for (let steps = 0; steps < mostForgotten; steps += 1) {
      this.#oldest ??= this.#visitNext();
      if (this.#oldest === undefined) return;
      const [key, record] = this.#oldest;
      // It may have been forgotten by a person, and handled again.
      if (this.#handled.get(key) === record) {
        if (record.expiresAt > at) {
          if (!this.#isFull()) return;
          this.#warnOnce();
        }
        this.#remove(key);
      }
      this.#oldest = undefined;
    }
  }

  /** Returns the oldest record that was not visited yet. */
  #visitNext(): [string, HandledRecord] | undefined {
    const next = this.#unvisited.next();
    if (next.done !== true) return next.value;
    // An iterator that has ended stays at its end.
    this.#unvisited = this.#handled.entries();
    return undefined;
  }

  #warnOnce(): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    const limit = `${this.#maxEntries} of them, or ${charactersPerEntry * this.#maxEntries} characters`;
    process.emitWarning(`The memory store is full: it forgets callbacks early, beyond ${limit}.`, {
      code: 'TRANSFER_CALLBACKS_MEMORY_STORE_FULL',
    });
  }
}

/** A literal, not a class: a store that wraps this one may spread it. */
function toClaim(table: Table, claim: Holder, leaseMs: number, retentionMs: number): Claim {
  let overlapped: boolean | undefined;
  return {
    tx: undefined,
    renew: () => Promise.resolve(table.renew(claim, leaseMs)),
    settle() {
      const hadExpired = table.settle(claim, retentionMs);
      overlapped ??= hadExpired;
      return Promise.resolve({ overlapped });
    },
    release() {
      table.release(claim);
      return Promise.resolve();
    },
  };
}

/** A monotonic clock in whole milliseconds; small integers are cheap to store. */
function now(): number {
  return Math.ceil(performance.now());
}
