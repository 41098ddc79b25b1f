import type { SafeLogger } from '../lib/logger.js';
import type { CallbackShape } from './callback.js';
import type { Lines } from './claim/lines.js';
import type { ClaimParts } from './claim/rules.js';
import type { IgnoredNames } from './ignored-names.js';
import type { ResolvedOptions } from './options.js';

/** What all deliveries of a receiver share. */
export interface ReceiverParts<C extends CallbackShape, Tx> extends ClaimParts<Tx> {
  readonly options: ResolvedOptions<C, Tx> & { readonly logger: SafeLogger };
  readonly lines: Lines<Tx>;
  readonly ignored: IgnoredNames;
  /** Whether the log has the warning about a handler that has not used `context.tx`. */
  hasWarnedOfTx: boolean;
  /** Whether the log has the warning about a `timestamp` that is not a time. */
  hasWarnedOfTime: boolean;
}
