import type { PayoutService } from '../../core/payout-service.js';
import { translateStatus } from '../open-status.js';

const dayMs = 86_400_000;

/** How many statuses are counted. A service may write more than a word into a status. */
const mostStatuses = 20;

/** The statuses of the transfers that the service reports as open. */
export class OpenStatuses {
  readonly #seemsFinal: PayoutService['seemsFinal'];
  readonly #counts = new Map<string, number>();
  readonly #seemFinal = new Set<string>();
  readonly #old = new Set<string>();

  constructor(seemsFinal: PayoutService['seemsFinal']) {
    this.#seemsFinal = seemsFinal;
  }

  /** `createdMs` is in milliseconds since 1970, or NaN. */
  note(status: string, createdMs: number): void {
    if (!this.#counts.has(status) && this.#counts.size === mostStatuses) return;
    this.#counts.set(status, (this.#counts.get(status) ?? 0) + 1);
    if (this.#seemsFinal?.(status) === true) this.#seemFinal.add(status);
    else if (Date.now() - createdMs > dayMs) this.#old.add(status);
  }

  /** The number of transfers by status. */
  get counts(): Record<string, number> {
    return Object.fromEntries(this.#counts);
  }

  /** Advice about statuses that may be final by another word; `undefined` if none is, and no open transfer is old. */
  get advice(): string | undefined {
    if (this.#seemFinal.size + this.#old.size === 0) return undefined;
    const list = (statuses: ReadonlySet<string>): string => [...statuses].join(', ');
    const facts = [
      ...(this.#seemFinal.size > 0 ? [`The service reports the status ${list(this.#seemFinal)}`] : []),
      ...(this.#old.size > 0 ? [`Transfers older than a day have the status ${list(this.#old)}`] : []),
    ];
    const advice = this.#seemFinal.size > 0 ? `${translateStatus} Otherwise contact` : 'Contact';
    return `${facts.join('. ')}. ${advice} the payout service.`;
  }
}
