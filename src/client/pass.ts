import { Slots } from './concurrency.js';
import { pauseUnlessAborted } from './deadline.js';
import { Items } from './items.js';
import { lookUpTransfer, type Lookup } from './lookup.js';
import { Pace } from './pace.js';
import { ReconciliationError, type PassOptions, type PassReport, type Stopped } from './pass-options.js';

const itemsPerMacrotask = 1_000;

/**
 * Goes through the items, `concurrency` at a time, as fast as the service allows. `handle` resolves with whether it has read the
 * transfer; what it throws ends the pass.
 */
export class Pass<Item> {
  readonly #options: PassOptions;
  readonly #report: PassReport<Item>;
  readonly #pace: Pace;
  readonly #slots: Slots;
  readonly #startedAt = performance.now();
  readonly #ending = new AbortController();
  /** One per query, not `#ending` for all: an AbortSignal removes a listener in linear time. */
  readonly #reading = new Set<AbortController>();
  readonly #underWay = new Set<Promise<void>>();
  #stopped: Stopped | undefined;
  #fault: ReconciliationError | undefined;
  #firstUnread: { index: number; previous: Item | undefined } | undefined;
  #last: Item | undefined;

  constructor(options: PassOptions, report: PassReport<Item>) {
    const { concurrency = 4, queriesPerSecond = Infinity } = options;
    this.#options = options;
    this.#report = report;
    this.#pace = new Pace(queriesPerSecond);
    this.#slots = new Slots(concurrency);
  }

  /** Resolves when everything that was begun has ended. Rejects with a `ReconciliationError`. */
  async run(
    source: AsyncIterable<Item> | Iterable<Item>,
    handle: (item: Item) => Promise<'read' | 'unread'>,
  ): Promise<void> {
    const { signal } = this.#options;
    const abort = (): void => {
      this.stop('aborted');
    };
    signal?.addEventListener('abort', abort);
    if (signal?.aborted) abort();
    let isComplete = false;
    try {
      const items = new Items(source, this.#ending.signal);
      await this.#takeAll(items, handle);
      isComplete = items.isDone;
      await items.close();
    } catch (error) {
      this.#fail('PENDING_FAILED', error);
    }
    await Promise.all(this.#underWay);
    signal?.removeEventListener('abort', abort);

    isComplete &&= this.#firstUnread === undefined && this.#fault === undefined;
    this.#report.stopped = isComplete ? undefined : this.#stopped;
    this.#report.cursor = this.#firstUnread === undefined ? this.#last : this.#firstUnread.previous;
    this.#report.durationMs = performance.now() - this.#startedAt;
    if (this.#fault !== undefined) throw this.#fault;
  }

  /** Ends the pass, and gives up what is being read. */
  stop(reason: Stopped): void {
    this.#takeNoMore(reason);
    for (const controller of this.#reading) controller.abort();
  }

  /** Queries a transfer, and takes note of how the service is doing. */
  async lookUp(id: string): Promise<Lookup> {
    if (this.#ending.signal.aborted) return { result: 'unread' };
    this.#report.queries += 1;
    this.#pace.noteQueryStart();
    const controller = new AbortController();
    this.#reading.add(controller);
    const found = await lookUpTransfer(this.#options.client, id, controller.signal);
    this.#reading.delete(controller);

    if (found.result === 'unread') return found;
    const trouble = this.#pace.noteQueryEnd('error' in found ? found.error : undefined);
    if (trouble !== undefined) this.stop(trouble);
    return found;
  }

  /** Takes note of how the receiver's store is doing. */
  noteStore(isAvailable: boolean): void {
    const trouble = this.#pace.noteStore(isAvailable);
    if (trouble !== undefined) this.stop(trouble);
  }

  async #takeAll(items: Items<Item>, handle: (item: Item) => Promise<'read' | 'unread'>): Promise<void> {
    const { limit = Infinity } = this.#options;
    for (let index = 0; this.#stopped === undefined; index += 1) {
      if (index === limit) {
        this.#takeNoMore('limit');
        return;
      }
      // Items without I/O are promises only: timers and signals would wait for the last of them.
      if (index % itemsPerMacrotask === itemsPerMacrotask - 1) await new Promise(setImmediate);
      await this.#slots.take();
      const next = await items.next();
      if (next === undefined) return;
      await this.#waitForPace();
      this.#begin(next.value, index, handle);
    }
  }

  async #waitForPace(): Promise<void> {
    const { signal } = this.#ending;
    // A loop, because a query under way may fail meanwhile and ask for a longer pause.
    for (let ms = this.#pace.waitMs; ms > 0 && !signal.aborted; ms = this.#pace.waitMs) {
      await pauseUnlessAborted(ms, signal);
    }
  }

  #begin(item: Item, index: number, handle: (item: Item) => Promise<'read' | 'unread'>): void {
    const previous = this.#last;
    this.#last = item;
    const task = handle(item)
      .then((result) => {
        if (result === 'read' || index > (this.#firstUnread?.index ?? Infinity)) return;
        this.#firstUnread = { index, previous };
      })
      .catch((error: unknown) => {
        this.#fail('ON_PROGRESS_FAILED', error);
      })
      .finally(() => {
        this.#underWay.delete(task);
        this.#slots.release();
      });
    this.#underWay.add(task);
  }

  #takeNoMore(reason: Stopped): void {
    // Until the last transfers are read, the pass may still end for a better reason than its limit.
    if (this.#stopped === undefined || this.#stopped === 'limit') this.#stopped = reason;
    this.#ending.abort();
  }

  #fail(code: ReconciliationError['code'], error: unknown): void {
    this.#fault ??= new ReconciliationError(code, this.#report, error);
    this.#takeNoMore('error');
  }
}
