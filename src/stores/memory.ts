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

/**
 * Keeps claims in this process: for development, for tests, and for an app that runs as one process and may forget
 * at a restart. Throws INVALID_OPTION.
 */
export function memoryStore(options: MemoryStoreOptions = {}): CallbackStore {
  onlyKnownOptions(options, ['maxEntries']);
  const maxEntries = wholeNumber('maxEntries', options.maxEntries ?? 100_000, 1);
  const claims = new Map<string, Expiring & { readonly token: string }>();
  const settled = new Map<string, Expiring & { readonly fingerprint: string }>();
  // One walk over `settled`, oldest first, that goes on as records go. Starting anew for each would pass over every
  // hole that the earlier ones have left.
  let walk = settled.entries();
  let oldest = walk.next();
  let evicted = false;

  function forgetOld(): void {
    while (settled.size > 0) {
      if (oldest.done === true) {
        walk = settled.entries();
        oldest = walk.next();
        continue;
      }
      const [key, record] = oldest.value;
      if (settled.get(key) === record) {
        if (isLive(record)) {
          if (settled.size <= maxEntries) return;
          warnOnce();
        }
        settled.delete(key);
      }
      oldest = walk.next();
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
    const record = settled.get(key);
    if (record !== undefined && isLive(record)) return { state: 'settled', fingerprint: record.fingerprint };
    const held = claims.get(key);
    if (held !== undefined && held.token !== token && isLive(held)) return { state: 'in_progress' };
    claims.set(key, { token, expiresAt: now() + leaseMs });

    const mine = (): Expiring | undefined => {
      const holder = claims.get(key);
      return holder?.token === token ? holder : undefined;
    };
    const isMineAndLive = (): boolean => {
      const holder = mine();
      return holder !== undefined && isLive(holder);
    };
    let overlapped: boolean | undefined;
    return {
      state: 'claimed',
      lease: {
        tx: undefined,
        renew() {
          const live = isMineAndLive();
          if (live) claims.set(key, { token, expiresAt: now() + leaseMs });
          return Promise.resolve(live);
        },
        settle() {
          overlapped ??= !isMineAndLive();
          if (mine() !== undefined) claims.delete(key);
          settled.delete(key); // So that it is set at the end, where the youngest are.
          settled.set(key, { fingerprint, expiresAt: now() + retentionMs });
          forgetOld();
          return Promise.resolve({ overlapped });
        },
        release() {
          if (mine() !== undefined) claims.delete(key);
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

function isLive({ expiresAt }: Expiring): boolean {
  return expiresAt > now();
}
