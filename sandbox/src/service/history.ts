import type { TransferCallback } from '../../../src/core/callback.js';
import type { SeriesState, PlannedAttempt, SandboxAttempt } from './series.js';
import { behaviours, type Behaviour, type TransferScenario } from './scenarios.js';
import { callbackOf, type SandboxFacts } from './facts.js';

/** An event of a transfer. `atMs` is in milliseconds of Unix time by the sandbox's clock. */
export type SandboxEvent =
  | { readonly type: 'created'; readonly atMs: number }
  /**
   * A second event has the other final status, in the scenario `flip` or by `contradict`. At a high speed
   * `atMs` is later than `data.timestamp`, the time at which it was due.
   */
  | { readonly type: 'final'; readonly atMs: number; readonly status: 'SUCCESS' | 'FAILED' }
  /** Listed when the attempt has ended; `atMs` is the time at which it was sent. */
  | { readonly type: 'attempt'; readonly atMs: number; readonly attempt: SandboxAttempt }
  /** The attempt of this number was the first of its outcome to be acknowledged. */
  | { readonly type: 'acknowledged'; readonly atMs: number; readonly number: number }
  /**
   * The merchant queried the transfer, and the response showed this status; `undefined` if it was an error. Consecutive
   * queries with the same response are one event, with the time of the last.
   */
  | {
      readonly type: 'queried';
      readonly atMs: number;
      readonly times: number;
      readonly status: 'PENDING' | 'SUCCESS' | 'FAILED' | undefined;
    }
  /** `resend` was called. */
  | { readonly type: 'resent'; readonly atMs: number };

/** A transfer as the sandbox knows it. `pending` is a word of the sandbox: the service documents none. */
export type SandboxTransfer = {
  readonly id: string;
  readonly externalId: string;
  readonly scenario: TransferScenario;
  /** By the sandbox's clock, in milliseconds of Unix time, like every time here. */
  readonly createdAtMs: number;
  /** Where its callbacks go; `undefined` if the service sends none. */
  readonly callbackUrl: string | undefined;
  /** Whether `callback` has been acknowledged with 2xx. */
  readonly delivered: boolean;
  /** When it becomes final; `undefined` if it is. */
  readonly finalDueMs: number | undefined;
  /** The attempt that is planned next, if one is. */
  readonly next: { readonly number: number; readonly plannedAtMs: number } | undefined;
  /** How many attempts are under way. */
  readonly underWay: number;
  /** What has happened to it, in the order in which the sandbox learnt it. */
  readonly events: readonly SandboxEvent[];
} & (
  | { readonly state: 'pending'; readonly finalAtMs: undefined; readonly callback: undefined }
  /** `callback` is the outcome, whether or not the scenario delivers it. */
  | { readonly state: 'SUCCESS' | 'FAILED'; readonly finalAtMs: number; readonly callback: TransferCallback }
);

/** The outcome of a transfer. Its bytes are fixed with it: every attempt, and a later resend, sends the same. */
export interface FinalOutcome {
  readonly callback: TransferCallback;
  readonly body: string;
  readonly atMs: number;
}

/** What is known of a transfer from its creation on. */
interface TransferParts {
  readonly place: number;
  readonly facts: SandboxFacts;
  readonly scenario: TransferScenario;
  readonly createdAtMs: number;
  readonly finalDueMs: number;
  readonly callbackUrl: string | undefined;
  /** Called after every change. */
  onChange(): void;
}

/** One transfer, and what has happened to it. */
export class TransferHistory {
  readonly facts: SandboxFacts;
  readonly behaviour: Behaviour;
  readonly callbackUrl: string | undefined;
  readonly finalDueMs: number;
  /** Counted from 1 in the order of creation. */
  readonly place: number;
  final: FinalOutcome | undefined;
  delivered = false;
  failingQueries: number;
  readonly #parts: TransferParts;
  readonly #events: SandboxEvent[];
  #searchText: string | undefined;
  /** The state of each series of attempts: a resend may overlap with the first series. */
  readonly #series = new Map<object, SeriesState>();

  constructor(parts: TransferParts) {
    this.#parts = parts;
    this.place = parts.place;
    this.facts = parts.facts;
    this.callbackUrl = parts.callbackUrl;
    this.finalDueMs = parts.finalDueMs;
    this.behaviour = behaviours[parts.scenario];
    this.failingQueries = this.behaviour.failingQueries ?? 0;
    this.#events = [{ type: 'created', atMs: parts.createdAtMs }];
    parts.onChange();
  }

  /** The final statuses so far, in words: `FAILED, then SUCCESS`. */
  get stateInWords(): string {
    const statuses = this.#events.flatMap((event) => (event.type === 'final' ? [event.status] : []));
    return statuses.join(', then ') || 'pending';
  }

  get events(): readonly SandboxEvent[] {
    return this.#events;
  }

  /** The attempts that have ended. */
  get attempts(): readonly SandboxAttempt[] {
    return this.#events.flatMap((event) => (event.type === 'attempt' ? [event.attempt] : []));
  }

  /** The bodies that the service has sent, or will send. */
  get sent(): readonly string[] {
    return [...this.attempts.map(({ body }) => body), ...(this.final === undefined ? [] : [this.final.body])];
  }

  /** The attempt that is planned next. */
  get next(): PlannedAttempt | undefined {
    const planned = [...this.#series.values()].flatMap((state) => ('next' in state ? [state.next] : []));
    return planned.sort((a, b) => a.plannedAtMs - b.plannedAtMs)[0];
  }

  get underWay(): number {
    return [...this.#series.values()].reduce((sum, state) => sum + ('underWay' in state ? state.underWay : 0), 0);
  }

  /**
   * The text in which a search looks, in lower case, without the outcome. Made at the first search: most sandboxes see
   * none.
   */
  get searchText(): string {
    const { facts, scenario, callbackUrl } = this.#parts;
    return (this.#searchText ??= `${JSON.stringify(facts)} ${scenario} ${callbackUrl ?? ''}`.toLowerCase());
  }

  add(event: SandboxEvent): void {
    this.#events.push(event);
    this.#parts.onChange();
  }

  addQuery(atMs: number, status: 'PENDING' | 'SUCCESS' | 'FAILED' | undefined): void {
    const last = this.#events.at(-1);
    // One event per query would grow without end under a merchant that polls.
    const isSame = last?.type === 'queried' && last.status === status;
    if (isSame) this.#events.pop();
    this.add({ type: 'queried', atMs, times: isSame ? last.times + 1 : 1, status });
  }

  /** Makes the transfer final at `atMs`, the time in the callback. `nowMs` may be later, because timers may be late. */
  finish(status: 'SUCCESS' | 'FAILED', atMs: number, nowMs: number): FinalOutcome {
    const callback = callbackOf(this.facts, status, atMs);
    this.final = { callback, body: JSON.stringify(callback), atMs };
    this.delivered = false;
    // Not `atMs`: an event that the sandbox has recorded since then would have a later time, and be listed before this
    // one.
    this.add({ type: 'final', atMs: nowMs, status });
    return this.final;
  }

  setSeries(series: object, state: SeriesState | undefined): void {
    if (state === undefined) this.#series.delete(series);
    else this.#series.set(series, state);
    this.#parts.onChange();
  }

  toPublic(): SandboxTransfer {
    const { facts, scenario, createdAtMs, callbackUrl } = this.#parts;
    const { id, externalId } = facts;
    const { delivered, next, underWay, finalDueMs } = this;
    const events = [...this.#events];
    const known = { id, externalId, scenario, createdAtMs, callbackUrl, delivered, next, underWay, events };
    if (this.final === undefined) {
      return { ...known, state: 'pending', finalDueMs, finalAtMs: undefined, callback: undefined };
    }
    const { callback, atMs } = this.final;
    // A copy: a change to it must not change what a query responds.
    const { status: state } = callback.data;
    return { ...known, state, finalDueMs: undefined, finalAtMs: atMs, callback: structuredClone(callback) };
  }
}
