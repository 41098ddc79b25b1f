import { onlyKnownOptions, wholeNumber } from '../core/checks.js';
import { describeHolder } from '../core/delivery.js';
import type { Claim, ClaimRequest, InspectableStore, Lease, RecordsKept, StoreRecord } from '../core/store.js';

/** Options of `memoryStore`. */
export interface MemoryStoreOptions {
  /**
   * How many settled callbacks are remembered, at 240 to 280 bytes each. Beyond that the oldest is forgotten
   * early, and a process warning reports that once. Default 100 000.
   */
  maxEntries?: number | undefined;
}

/** A callback that is claimed or settled, and its place in the chain of settled ones. */
interface Entry {
  readonly key: string;
  readonly fingerprint: string;
  /** The token of the delivery that holds the claim; `undefined` once it has settled. */
  token: string | undefined;
  /** `gone` once the entry has left the table. */
  expiresAt: number;
  /** The next younger settled entry. */
  next: Entry | undefined;
}

/** Earlier than every time. An entry that has left the table has expired, too. */
const gone = 0;

/** How many entries one call forgets at most. A million in one call took over half a second. */
const mostForgotten = 100;

/**
 * Keeps claims in this process: for development, for tests, and for an app that runs as one process and may forget
 * at a restart. Throws INVALID_ARGUMENT.
 */
export function memoryStore(options: MemoryStoreOptions = {}): InspectableStore {
  onlyKnownOptions(options, ['maxEntries']);
  const { maxEntries = 100_000 } = options;
  const table = new Table(wholeNumber('maxEntries', maxEntries, { min: 1, example: 100_000 }));
  return {
    processLocal: true,
    claim: (key, request) => Promise.resolve(table.claim(key, request)),
    read: (key) => Promise.resolve(table.read(key)),
    forget: (key, fingerprint) => Promise.resolve(table.forget(key, fingerprint)),
  };
}

class Table {
  // One Map for claimed and settled: a Map of claims alone would grow and shrink with every callback, and V8 keeps
  // outgrown tables until a major GC.
  readonly #entries = new Map<string, Entry>();
  readonly #maxEntries: number;
  /** The settled entries in the order they were settled. An iterator over the Map would keep its outgrown tables. */
  #oldest: Entry | undefined;
  #youngest: Entry | undefined;
  #chained = 0;
  #hasWarned = false;
  /** The shortest retention of all claims. */
  #retentionMs = Infinity;
  /** When the last record was forgotten early, or the store was made. In milliseconds since 1970. */
  #keptSinceMs = Date.now();

  constructor(maxEntries: number) {
    this.#maxEntries = maxEntries;
  }

  claim(key: string, { token, fingerprint, leaseMs, retentionMs }: ClaimRequest): Claim {
    const at = now();
    let entry = this.#entries.get(key);
    if (entry?.token !== undefined && entry.token === token) {
      // The same claim, sent twice. Also if it has expired meanwhile: its first lease must release and settle this one.
      entry.expiresAt = at + leaseMs;
    } else if (entry !== undefined && entry.expiresAt > at) {
      return entry.token === undefined
        ? { state: 'settled', fingerprint: entry.fingerprint }
        : { state: 'in_progress' };
    } else {
      if (entry !== undefined) entry.expiresAt = gone;
      entry = { key, fingerprint, token, expiresAt: at + leaseMs, next: undefined };
      this.#entries.set(key, entry);
      // Stryker disable next-line EqualityOperator: Equal: the same number.
      if (retentionMs < this.#retentionMs) this.#retentionMs = retentionMs;
    }
    return { state: 'claimed', lease: toLease(this, entry, leaseMs, retentionMs) };
  }

  /** Returns whether the lease is still held, and lengthens it if so. */
  renew(entry: Entry, leaseMs: number): boolean {
    const at = now();
    if (entry.token === undefined || entry.expiresAt <= at) return false;
    entry.expiresAt = at + leaseMs;
    return true;
  }

  /** Records the success. Returns whether the lease had expired before. */
  settle(claimed: Entry, retentionMs: number): boolean {
    const at = now();
    const overlapped = claimed.expiresAt <= at;
    const entry = claimed.token === undefined || claimed.expiresAt === gone ? this.#replace(claimed) : claimed;
    entry.token = undefined;
    entry.expiresAt = at + retentionMs;
    if (this.#youngest !== undefined) this.#youngest.next = entry;
    this.#youngest = entry;
    this.#oldest ??= entry;
    this.#chained += 1;
    this.#forgetOld(at);
    return overlapped;
  }

  release(entry: Entry): void {
    if (entry.token !== undefined) this.#remove(entry);
  }

  read(key: string): StoreRecord {
    const at = now();
    const entry = this.#entries.get(key);
    if (entry === undefined || entry.expiresAt <= at) return { state: 'free', ...this.#kept() };
    const leftMs = entry.expiresAt - at;
    const { token, fingerprint } = entry;
    if (token === undefined) return { state: 'settled', fingerprint, expiresAt: new Date(Date.now() + leftMs) };
    return { state: 'claimed', delivery: token, ...describeHolder(token), leaseLeftMs: leftMs };
  }

  forget(key: string, fingerprint: string): boolean {
    const entry = this.#entries.get(key);
    if (entry === undefined || entry.token !== undefined || entry.expiresAt <= now()) return false;
    if (entry.fingerprint !== fingerprint) return false;
    this.#remove(entry);
    return true;
  }

  /** Replaces the table's entry for this key by a copy of `entry`, which has expired or been replaced. */
  #replace(entry: Entry): Entry {
    const current = this.#entries.get(entry.key);
    if (current !== undefined) current.expiresAt = gone;
    const copy = { ...entry, next: undefined };
    this.#entries.set(entry.key, copy);
    return copy;
  }

  #remove(entry: Entry): void {
    if (entry.expiresAt === gone) return;
    entry.expiresAt = gone;
    this.#entries.delete(entry.key);
  }

  /** Forgets what has expired, and the oldest beyond `maxEntries`. At most 100 at a time, so that no delivery is blocked. */
  #forgetOld(at: number): void {
    // Stryker disable next-line EqualityOperator: Equal: one more at a time.
    for (let steps = 0; this.#oldest !== undefined && steps < mostForgotten; steps += 1) {
      if (this.#oldest.expiresAt > at) {
        if (this.#chained <= this.#maxEntries) return;
        this.#keptSinceMs = Date.now();
        this.#warnOnce();
      }
      this.#remove(this.#oldest);
      this.#oldest = this.#oldest.next;
      this.#chained -= 1;
    }
  }

  #kept(): { kept?: RecordsKept } {
    const retentionMs = this.#retentionMs;
    return retentionMs === Infinity ? {} : { kept: { since: new Date(this.#keptSinceMs), retentionMs } };
  }

  #warnOnce(): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    process.emitWarning(`The memory store is full: it forgets callbacks early, beyond ${this.#maxEntries} of them.`, {
      code: 'TRANSFER_CALLBACKS_MEMORY_STORE_FULL',
    });
  }
}

/** A literal, not a class: a store that wraps this one may spread it. */
function toLease(table: Table, entry: Entry, leaseMs: number, retentionMs: number): Lease {
  let overlapped: boolean | undefined;
  return {
    tx: undefined,
    renew: () => Promise.resolve(table.renew(entry, leaseMs)),
    settle() {
      const hadExpired = table.settle(entry, retentionMs);
      overlapped ??= hadExpired;
      return Promise.resolve({ overlapped });
    },
    release() {
      table.release(entry);
      return Promise.resolve();
    },
  };
}

/** A monotonic clock in whole milliseconds; small integers are cheap to store. */
function now(): number {
  return Math.ceil(performance.now());
}
