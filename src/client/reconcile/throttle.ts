import type { TransferClientError } from '../errors.js';

/** A failure that the next transfer would probably meet as well. */
export type Trouble =
  /** The service cannot be reached, or is too busy. */
  | 'unavailable'
  /** The service refuses, but not with 404: the key may be revoked or expired. */
  | 'refused'
  /** The receiver's store is down, so that nothing can be handled. */
  | 'store_unavailable';

const failuresInARow = 10;
const firstPauseMs = 1_000;
const longestPauseMs = 60_000;

/**
 * Decides when a run may query the next transfer, and when it should end: after 10 failures of one kind in a row, or
 * when the service asks for a pause of over 60 s. Pauses after a failure as long as the service asks, and at least 1 s,
 * then 2 s, 4 s and so on. A refusal needs no pause.
 */
export class Throttle {
  readonly #intervalMs: number;
  readonly #inARow: Record<Trouble, number> = { unavailable: 0, refused: 0, store_unavailable: 0 };
  #pausedUntil = 0;
  #nextQueryAt = 0;

  constructor(queriesPerSecond: number) {
    this.#intervalMs = 1_000 / queriesPerSecond;
  }

  /** How long the next transfer must wait, in milliseconds. */
  get waitMs(): number {
    return Math.max(this.#pausedUntil, this.#nextQueryAt) - performance.now();
  }

  noteQueryStart(): void {
    this.#nextQueryAt = Math.max(this.#nextQueryAt, performance.now()) + this.#intervalMs;
  }

  /** Returns the trouble for which the run should end. */
  noteQueryEnd(error: TransferClientError | undefined): Trouble | undefined {
    if (error !== undefined) {
      if (error.code === 'INVALID_ID') return undefined; // Nothing was sent.
      const trouble = findTrouble(error);
      if (trouble !== undefined) return this.#noteTrouble(trouble, error.retryAfterMs);
    }
    this.#inARow.unavailable = this.#inARow.refused = 0;
    return undefined;
  }

  /** Returns the trouble for which the run should end. */
  noteStore(isAvailable: boolean): Trouble | undefined {
    if (!isAvailable) return this.#noteTrouble('store_unavailable');
    this.#inARow.store_unavailable = 0;
    return undefined;
  }

  #noteTrouble(trouble: Trouble, askedMs = 0): Trouble | undefined {
    const inARow = (this.#inARow[trouble] += 1);
    if (inARow >= failuresInARow || askedMs > longestPauseMs) return trouble;
    if (trouble === 'refused') return undefined;
    const pauseMs = Math.max(askedMs, Math.min(firstPauseMs * 2 ** (inARow - 1), longestPauseMs));
    this.#pausedUntil = Math.max(this.#pausedUntil, performance.now() + pauseMs);
    return undefined;
  }
}

/** `undefined` for an error that concerns one transfer only. */
function findTrouble({ code, status }: TransferClientError): Trouble | undefined {
  if (code === 'UNAVAILABLE' || status === 429) return 'unavailable';
  // 404 is documented as a missing key (service §5.4), but the client always sends one.
  return code === 'REFUSED' && status !== 404 ? 'refused' : undefined;
}
