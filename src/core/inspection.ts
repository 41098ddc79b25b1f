import { idMessage, isCallbackId } from './callback.js';
import { invalidArgument } from './checks.js';
import { toDeliveryName } from './delivery.js';
import { TransferCallbackError } from './errors.js';
import type { InFlight } from './in-flight.js';
import type { ResolvedTimes } from './options.js';
import type { CallbackStore, StoreRecord } from './store.js';
import { requireClaim, storeTimeout, type TimedStore } from './timed-store.js';
import { settleWithin, TimerQueue } from './timers.js';

/** The store's record of a callback, and `here` while this process runs its handler. */
export type InspectedCallback = StoreRecord & {
  /** How long the handler has been running in this process, in milliseconds. */
  here?: { sinceMs: number };
};

/** Whether the store grants a claim, and how long the claim and its release took, in milliseconds. */
export type StoreCheck = { ok: true; storeMs: number } | { ok: false; error: unknown };

/** The parts that an inspection shares with the receiver. */
interface InspectionTerms<Tx> {
  readonly store: CallbackStore<Tx>;
  readonly timedStore: TimedStore<Tx>;
  readonly times: ResolvedTimes;
  readonly inFlight: InFlight;
  readonly nameDelivery: () => string;
}

/**
 * Reads, probes and corrects the store on behalf of people. Each call may take `storeTimeoutMs`, which is
 * extended once as for every call of the store.
 */
export class Inspection<Tx> {
  readonly #terms: InspectionTerms<Tx>;
  readonly #deadlines: TimerQueue;

  constructor(terms: InspectionTerms<Tx>) {
    this.#terms = terms;
    this.#deadlines = new TimerQueue(terms.times.storeTimeoutMs, { extendsOnce: true });
  }

  async inspect(id: string): Promise<InspectedCallback> {
    const record = await this.read(id);
    const sinceMs = this.#terms.inFlight.handlerMs(id);
    return sinceMs === undefined ? record : { ...record, here: { sinceMs } };
  }

  /** Rejects with INVALID_ARGUMENT, STORE_UNSUPPORTED, STORE_TIMEOUT, STORE_REPLY_UNEXPECTED, or as the store does. */
  async read(id: string): Promise<StoreRecord> {
    requireId(id);
    const { store } = this.#terms;
    if (store.read === undefined) throw unsupported('read');
    return withDeliveryName(requireRecord(await this.#inTime(async () => store.read?.(id))));
  }

  /** Resolves with whether the record was forgotten. Rejects as `read` does. */
  async forget(id: string, fingerprint: string): Promise<boolean> {
    const { store } = this.#terms;
    return (await this.#inTime(async () => store.forget?.(id, fingerprint))) === true;
  }

  /** Claims a new key, and releases it. Never rejects. */
  async check(): Promise<StoreCheck> {
    const startedAt = performance.now();
    try {
      await this.#inTime(() => this.#claimAndRelease());
      return { ok: true, storeMs: performance.now() - startedAt };
    } catch (error) {
      return { ok: false, error };
    }
  }

  async #claimAndRelease(): Promise<void> {
    const { timedStore, times, nameDelivery } = this.#terms;
    const { leaseMs, retentionMs, storeTimeoutMs } = times;
    const claim = requireClaim(
      await timedStore.claim(`check-${crypto.randomUUID()}`, {
        token: nameDelivery(),
        fingerprint: '[]',
        leaseMs,
        retentionMs,
        timeoutMs: storeTimeoutMs,
        queueMs: storeTimeoutMs,
      }),
    );
    if (claim.state !== 'claimed') {
      throw new TransferCallbackError(
        'STORE_REPLY_UNEXPECTED',
        `Expected a claim of a new key to be granted, got ${claim.state}.`,
      );
    }
    await timedStore.release(claim.lease);
  }

  #inTime<T>(call: () => Promise<T>): Promise<T> {
    return settleWithin(this.#deadlines, call, () => storeTimeout(this.#terms.times.storeTimeoutMs));
  }
}

export function requireId(id: unknown): void {
  if (!isCallbackId(id)) throw invalidArgument('id', idMessage.replace('Expected ', ''), id);
}

/** Returns the error for a store that lacks an optional method. */
export function unsupported(method: 'read' | 'forget'): TransferCallbackError {
  return new TransferCallbackError(
    'STORE_UNSUPPORTED',
    `Expected \`store\` to have \`${method}\`; this store has none.`,
  );
}

/** Replaces the token of the claim by the name of the delivery. No log line contains the token of a second claim. */
function withDeliveryName(record: StoreRecord): StoreRecord {
  if (record.state === 'free' || typeof record.delivery !== 'string') return record;
  return { ...record, delivery: toDeliveryName(record.delivery) };
}

/** Throws STORE_REPLY_UNEXPECTED unless `record` is one. A store in JavaScript may resolve with any value. */
function requireRecord(record: StoreRecord | undefined): StoreRecord {
  if (record?.state === 'free' || record?.state === 'claimed') return record;
  if (record?.state === 'settled' && typeof record.fingerprint === 'string') return record;
  throw new TransferCallbackError(
    'STORE_REPLY_UNEXPECTED',
    'Expected `store.read` to resolve with a record: `free`, `claimed`, or `settled` with its fingerprint.',
  );
}
