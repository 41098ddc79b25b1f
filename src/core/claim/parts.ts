import type { SafeLogger } from '../../lib/logger.js';
import type { InFlight } from '../in-flight.js';
import type { ResolvedTimes } from '../options.js';
import type { CallbackStore } from '../store.js';
import type { StoreRules } from './rules.js';

/** What all claims of a receiver share. The functions that read and forget records need the same. */
export interface ClaimParts<Tx> {
  readonly options: ResolvedTimes & { readonly store: CallbackStore<Tx>; readonly logger: SafeLogger };
  readonly rules: StoreRules;
  readonly inFlight: InFlight;
}
