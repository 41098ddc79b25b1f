import { onlyKnownOptions, wholeNumber } from '../core/errors.js';
import type { CallbackStore, Claim, ClaimRequest } from '../core/store.js';

export interface MemoryStoreOptions {
  /**
   * How many settled callbacks are remembered, at up to about 250 bytes each. Beyond that the oldest is forgotten
   * early, and a process warning says so once. Default 100 000.
   */
  maxEntries?: number | undefined;
}

interface Expiring {
  readonly expiresAt: number;
}

/** A settled callback, in the chain from the oldest to the youngest. */
interface Settled extends Expiring {
  readonly key: string;
  readonly fingerprint: string;
  next: Settled | undefined;
}

/**
 * Keeps claims in this process: for development, for tests, and for an app that runs as one process and may forget
 * at a restart. Throws INVALID_OPTION.
 */
export function memoryStore(options: MemoryStoreOptions = {}): CallbackStore {
  onlyKnownOptions(options, ['maxEntries']);
  const { maxEntries = 100_000 } = options;
  wholeNumber('maxEntries', maxEntries, 1);
  const claims = new Map<string, Expiring & { readonly token: string }>();
  const settled = new Map<string, Settled>();
  // The order in which records expire. An iterator over `settled` would do, but V8 keeps every table that the Map has
  // outgrown since the iterator's last step.
  let oldest: Settled | undefined;
  let youngest: Settled | undefined;
  let evicted = false;

  function remember(record: Settled): void {
    settled.set(record.key, record);
    if (youngest !== undefined) youngest.next = record;
    youngest = record;
    oldest ??= record;
  }

  function forgetOld(at: number): void {
    while (oldest !== undefined) {
      // Not so where the same key was settled again.
      if (settled.get(oldest.key) === oldest) {
        if (oldest.expiresAt > at) {
          if (settled.size <= maxEntries) return;
          warnOnce();
        }
        settled.delete(oldest.key);
      }
      oldest = oldest.next;
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
    const record = settled.get(key);
    if (record !== undefined && record.expiresAt > at) return { state: 'settled', fingerprint: record.fingerprint };
    const held = claims.get(key);
    if (held !== undefined && held.token !== token && held.expiresAt > at) return { state: 'in_progress' };
    claims.set(key, { token, expiresAt: at + leaseMs });

    const isMine = (): boolean => claims.get(key)?.token === token;
    const isMineAndLive = (time: number): boolean => {
      const holder = claims.get(key);
      return holder?.token === token && holder.expiresAt > time;
    };
    let overlapped: boolean | undefined;
    return {
      state: 'claimed',
      lease: {
        tx: undefined,
        renew() {
          const time = now();
          const live = isMineAndLive(time);
          if (live) claims.set(key, { token, expiresAt: time + leaseMs });
          return Promise.resolve(live);
        },
        settle() {
          const time = now();
          overlapped ??= !isMineAndLive(time);
          if (isMine()) claims.delete(key);
          remember({ key, fingerprint, expiresAt: time + retentionMs, next: undefined });
          forgetOld(time);
          return Promise.resolve({ overlapped });
        },
        release() {
          if (isMine()) claims.delete(key);
          return Promise.resolve();
        },
      },
    };
  }

  return { processLocal: true, claim: (key, request) => Promise.resolve(claim(key, request)) };
}

/** Milliseconds since the process began: no clock that anyone can set, and a small integer. */
function now(): number {
  return Math.ceil(performance.now());
}
