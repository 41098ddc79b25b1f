import assert from 'node:assert/strict';
import type { InspectableStore, StoreRecord } from '../core/store.js';
import { Round } from './store-round.js';

/** By how much the clock of a store may differ from this machine's, in milliseconds. */
const clockToleranceMs = 10_000;

/** A check before it is bound to a store. */
export interface WrittenInspectionCheck {
  readonly title: string;
  /** How long a lease or record lasts that ends during the check, in milliseconds. Default: none ends. */
  readonly leaseMs?: number;
  readonly check: (round: InspectionRound) => Promise<void>;
}

/** One run of a check that reads and forgets. */
export class InspectionRound extends Round {
  readonly #reader: InspectableStore<unknown>;

  constructor(store: InspectableStore<unknown>, other: InspectableStore<unknown>, leaseMs: number) {
    super(store, other, leaseMs);
    this.#reader = other;
  }

  /** Reads the record of the callback. */
  read(): Promise<StoreRecord> {
    return this.measure(() => this.#reader.read(this.key));
  }

  readHundred(): Promise<StoreRecord[]> {
    return Promise.all(Array.from({ length: 100 }, () => this.read()));
  }

  /** Forgets the callback, by default as it was settled by `name`. */
  forget(name: string, fingerprint = `facts of ${name}`): Promise<boolean> {
    return this.measure(() => this.#reader.forget(this.key, fingerprint));
  }

  /** Claims and settles the callback. */
  async settle(name: string, request: { retentionMs?: number } = {}): Promise<void> {
    await (await this.lease(name, request)).settle();
  }

  async assertFree(when: string): Promise<void> {
    const record = await this.read();
    assert.ok(record.state === 'free', `${when} is not free but ${record.state}`);
    const { kept, ...rest } = record;
    assert.deepEqual(rest, { state: 'free' });
    if (kept === undefined) return;
    assertBetween('kept.since', kept.since, 0, Date.now());
    assert.ok(kept.retentionMs > 0, `\`kept.retentionMs\` is ${kept.retentionMs}`);
  }

  async assertSettled(name: string, message: string): Promise<void> {
    const record = await this.read();
    assert.ok(record.state === 'settled', `${message}: it is ${record.state}`);
    assert.equal(record.fingerprint, `facts of ${name}`, message);
  }

  /** Reads until the callback is free, which must be soon after `lengthMs`. The PostgreSQL store adds a second. */
  async assertFreeAfter(name: string, lengthMs: number): Promise<void> {
    const giveUpAt = performance.now() + lengthMs + Math.max(2_000, lengthMs / 2);
    for (;;) {
      const askedAt = performance.now();
      const { state } = await this.read();
      if (state === 'free') return;
      assert.ok(askedAt < giveUpAt, `${name} of ${lengthMs} ms has ended, and the callback is not free but ${state}`);
      await this.pause(Math.max(5, lengthMs / 50));
    }
  }
}

/** Asserts that a time, if the store shows one, lies between two others, given in milliseconds since 1970. */
export function assertBetween(name: string, time: Date | undefined, fromMs: number, toMs: number): void {
  if (time === undefined) return;
  const ms = time.getTime();
  assert.ok(
    ms >= fromMs - clockToleranceMs && ms <= toMs + clockToleranceMs,
    `\`${name}\` is ${shown(ms)}, not between ${shown(fromMs)} and ${shown(toMs)}`,
  );
}

function shown(ms: number): string {
  return Number.isNaN(ms) ? 'no time' : new Date(ms).toISOString();
}
