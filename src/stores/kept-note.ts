/** How long a store trusts its note, because the server may be emptied. In milliseconds. */
const renewEveryMs = 60_000;
/** How soon a note is tried again that could not be written. In milliseconds. */
const retryAfterMs = 5_000;

/**
 * Has a store note since when it keeps records, at its first claim and then at most once a minute. No claim waits for the
 * note, and none fails with it. Without the note a record that is missing would look like a callback that was never
 * handled.
 */
export class KeptNote {
  readonly #write: (retentionMs: number) => Promise<unknown>;
  #retentionMs = Infinity;
  #dueAt = 0;

  constructor(write: (retentionMs: number) => Promise<unknown>) {
    this.#write = write;
  }

  /** Call it for each claim that was granted, or when its lease is over. Receivers on one store may differ: the shortest retention counts. */
  renew(retentionMs: number): void {
    const now = performance.now();
    if (now < this.#dueAt && retentionMs >= this.#retentionMs) return;
    this.#dueAt = now + renewEveryMs;
    this.#retentionMs = Math.min(retentionMs, this.#retentionMs);
    this.#write(this.#retentionMs).catch(() => {
      this.#dueAt = performance.now() + retryAfterMs;
    });
  }
}
