import type { Turn } from './claim.js';
import type { InFlight } from './in-flight.js';
import type { Logger } from './logger.js';
import type { ResolvedTimes } from './options.js';
import type { ClaimRequest, Lease } from './store.js';
import type { TimedStore } from './timed-store.js';
import type { TimerQueue } from './timers.js';

/** The parts that all leases of a receiver share. */
export interface LeaseTerms<Tx> {
  readonly store: TimedStore<Tx>;
  readonly times: ResolvedTimes;
  readonly logger: Logger;
  readonly heartbeats: TimerQueue;
  readonly inFlight: InFlight;
}

/** A granted claim. */
export interface Granted<Tx> {
  readonly lease: Lease<Tx>;
  readonly request: ClaimRequest;
  readonly turn: Turn;
}

/**
 * The state of a held lease:
 * - `running`: the handler runs, and the lease is renewed.
 * - `lapsing`: the handler still runs, but the lease was lost, or is no longer renewed because the handler is too late.
 * - `recording`: the handler has succeeded, and the success is being recorded.
 * - `releasing`: the handler has failed, and the claim is being released.
 * - `finished`: nothing is left to do.
 */
export type LeaseState = 'running' | 'lapsing' | 'recording' | 'releasing' | 'finished';
