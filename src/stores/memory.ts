import { onlyKnownOptions, wholeNumber } from '../core/errors.js';
import type { CallbackStore, Claim, ClaimRequest } from '../core/store.js';

export interface MemoryStoreOptions {
  /**
   * How many settled callbacks are remembered, at 250 to 300 bytes each. Beyond that the oldest is forgotten
   * early, and a process warning says so once. Default 100 000.
   */
  maxEntries?: number | undefined;
}

interface Claimed {
  readonly token: string;
  expiresAt: number;
}

/** A settled callback, in the chain from the oldest to the youngest. */
interface Settled {
  readonly key: string;
  readonly fingerprint: string;
  readonly expiresAt: number;
  next: Settled | undefined;
}

/** How many records one call forgets at most. A million in one call took over half a second. */
const mostForgotten = 100;

/**
 * Keeps claims in this process: for development, for tests, and for an app that runs as one process and may forget
 * at a restart. Throws INVALID_ARGUMENT.
 */
export function memoryStore(options: MemoryStoreOptions = {}): CallbackStore {
  onlyKnownOptions(options, ['maxEntries']);
  const { maxEntries = 100_000 } = options;
  wholeNumber('maxEntries', maxEntries, 1);
  // One Map for claimed and settled: a Map of claims alone would grow and shrink with every callback, and V8 keeps
  // outgrown tables until a major GC.
  const records = new Map<string, Claimed | Settled>();
  // The order in which settled records expire. An iterator over the Map would do, but for the same tables.
  let oldest: Settled | undefined;
  let youngest: Settled | undefined;
  let chained = 0;
  let evicted = false;

  function remember(record: Settled): void {
    records.set(record.key, record);
    if (youngest !== undefined) youngest.next = record;
    youngest = record;
    oldest ??= record;
    chained += 1;
  }

  /** Forgets what has expired, and the oldest beyond `maxEntries`. Little at a time: it must not block a delivery. */
  function forgetOld(at: number): void {
    for (let steps = 0; oldest !== undefined && steps < mostForgotten; steps += 1) {
      // The key may have been claimed or settled again: then this record is gone already.
      if (records.get(oldest.key) === oldest) {
        if (oldest.expiresAt > at) {
          if (chained <= maxEntries) return;
          warnOnce();
        }
        records.delete(oldest.key);
      }
      oldest = oldest.next;
      chained -= 1;
    }
  }

  function warnOnce(): void {
    if (evicted) return;
    evicted = true;
    process.emitWarning(`The memory store is full: it forgets callbacks early, beyond ${maxEntries} of them.`, {
      code: 'TRANSFER_CALLBACKS_MEMORY_STORE_FULL',
    });
  }

  function claim(key: string, { token, fingerprint, leaseMs, retentionMs }: ClaimRequest): Claim {
    const at = now();
    const found = records.get(key);
    if (found !== undefined && found.expiresAt > at) {
      if ('fingerprint' in found) return { state: 'settled', fingerprint: found.fingerprint };
      if (found.token !== token) return { state: 'in_progress' };
    }
    records.set(key, { token, expiresAt: at + leaseMs });

    const mine = (): Claimed | undefined => {
      const record = records.get(key);
      return record !== undefined && 'token' in record && record.token === token ? record : undefined;
    };
    let overlapped: boolean | undefined;
    return {
      state: 'claimed',
      lease: {
        tx: undefined,
        renew() {
          const time = now();
          const claimed = mine();
          if (claimed === undefined || claimed.expiresAt <= time) return Promise.resolve(false);
          claimed.expiresAt = time + leaseMs;
          return Promise.resolve(true);
        },
        settle() {
          const time = now();
          overlapped ??= (mine()?.expiresAt ?? time) <= time;
          remember({ key, fingerprint, expiresAt: time + retentionMs, next: undefined });
          forgetOld(time);
          return Promise.resolve({ overlapped });
        },
        release() {
          if (mine() !== undefined) records.delete(key);
          return Promise.resolve();
        },
      },
    };
  }

  return { processLocal: true, claim: (key, request) => Promise.resolve(claim(key, request)) };
}

/** A monotonic clock in whole milliseconds; small integers are cheap to store. */
function now(): number {
  return Math.ceil(performance.now());
}
