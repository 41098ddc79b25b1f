import type { Ask } from '../../core/payout-service.js';
import { pause } from '../../lib/deadline.js';
import { lookUpTransfer, type Lookup } from '../ask.js';
import type { ListName } from './item.js';
import { ListSource, type TransferList } from './list.js';
import type { Throttle } from './throttle.js';
import type { PendingTransfer, ReconciliationReport, Stopped } from './report.js';
import type { ReconciliationError } from './errors.js';

const itemsPerMacrotask = 1_000;

const allUnknown =
  'The service responded with 404 to every query: is its address right, and is the key of the same environment?';

interface Taken {
  readonly value: PendingTransfer;
  readonly index: number;
  readonly previous: PendingTransfer | undefined;
}

/** The service as all lists of a run ask it. */
export interface RunService {
  readonly ask: Ask;
  readonly throttle: Throttle;
}

/** Options of a run over many transfers. */
export interface RunOptions {
  /**
   * How many transfers are processed at the same time, at most 10 000.
   * @default 4
   */
  concurrency?: number | undefined;
  /**
   * How many queries may begin per second. The client's own retries are not counted.
   * @default unlimited
   */
  queriesPerSecond?: number | undefined;
  /**
   * How many transfers are taken at most, of both lists together.
   * @default all
   */
  limit?: number | undefined;
  /**
   * Ends the run: no further transfers are read, those being read stay pending, and running handlers finish. Pass
   * `AbortSignal.timeout(ms)` to end it after a time.
   * @default none
   */
  signal?: AbortSignal | undefined;
}

/** Why a run cannot go on: your own code threw, or a list has no end. */
export interface Fault {
  readonly code: ReconciliationError['code'];
  readonly cause: unknown;
}

/** Goes through the transfers of a list with `concurrency` workers, as fast as the service allows. */
export class Run {
  readonly #service: RunService;
  readonly #options: RunOptions;
  readonly #report: ReconciliationReport;
  readonly #startedAt = performance.now();
  readonly #ending = new AbortController();
  readonly #list: ListSource;
  readonly #faultOfList: Fault['code'];
  /** One per query, not `#ending` for all: an AbortSignal removes a listener in linear time. */
  readonly #reading = new Set<AbortController>();
  /** Resolves when the worker that is taking an item has it. */
  #taking: Promise<Taken | undefined> = Promise.resolve(undefined);
  /** How many items were taken, and the last of them. */
  #count = 0;
  #last: PendingTransfer | undefined;
  /** The first item that was not read: the next run must begin there. */
  #firstSkipped: Taken | undefined;
  /** Why no more items are taken. */
  #stopped: Stopped | undefined;
  #fault: Fault | undefined;

  constructor(
    service: RunService,
    { name, source }: { name: ListName; source: TransferList },
    options: RunOptions,
    report: ReconciliationReport,
  ) {
    this.#service = service;
    this.#options = options;
    this.#report = report;
    this.#list = new ListSource(name, source, this.#ending.signal);
    this.#faultOfList = name === 'pending' ? 'PENDING_FAILED' : 'PAID_FAILED';
  }

  /** How many transfers were taken. */
  get count(): number {
    return this.#count;
  }

  /** Why no more transfers may be taken, even if the last one of the list was. */
  get trouble(): Stopped | undefined {
    return this.#stopped;
  }

  /**
   * Resolves when everything that was begun has ended, with the fault that has ended the run, if there is one.
   * `handle` resolves with whether the transfer was read, and what it throws is such a fault. Never rejects.
   */
  async handleEach(handle: (item: PendingTransfer) => Promise<boolean>): Promise<Fault | undefined> {
    const { signal, concurrency = 4 } = this.#options;
    const abort = (): void => {
      this.stop('aborted');
    };
    signal?.addEventListener('abort', abort);
    if (signal?.aborted) abort();
    await Promise.all(Array.from({ length: concurrency }, () => this.#work(handle)));
    await this.#list.close().catch((error: unknown) => {
      this.#fail(this.#faultOfList, error);
    });
    signal?.removeEventListener('abort', abort);

    const isComplete = this.#list.isDone && this.#firstSkipped === undefined && this.#fault === undefined;
    // Without another reason the workers have stopped at the limit.
    this.#report.stopped = isComplete ? undefined : (this.#stopped ?? 'limit');
    this.#report.cursor = this.#firstSkipped === undefined ? this.#last : this.#firstSkipped.previous;
    this.#report.durationMs = performance.now() - this.#startedAt;
    const { queries, unknown } = this.#report;
    if (queries > 0 && unknown === queries) this.#report.advice = allUnknown;
    return this.#fault;
  }

  /** Ends the run, and gives up what is being read. */
  stop(reason: Stopped): void {
    this.#takeNoMore(reason);
    for (const controller of this.#reading) controller.abort();
  }

  /** Queries a transfer, and takes note of how the service is doing. */
  async lookUp(id: string): Promise<Lookup> {
    if (this.#ending.signal.aborted) return { state: 'skipped' };
    this.#report.queries += 1;
    this.#service.throttle.noteQueryStart();
    const controller = new AbortController();
    this.#reading.add(controller);
    const found = await lookUpTransfer(this.#service.ask, id, controller.signal);
    this.#reading.delete(controller);

    const trouble = this.#service.throttle.noteQueryEnd('error' in found ? found.error : undefined);
    if (trouble !== undefined) this.stop(trouble);
    return found;
  }

  /** Takes note of how the receiver's store is doing. */
  noteStore(isAvailable: boolean): void {
    const trouble = this.#service.throttle.noteStore(isAvailable);
    if (trouble !== undefined) this.stop(trouble);
  }

  /** Handles one item after another. Never rejects. */
  async #work(handle: (item: PendingTransfer) => Promise<boolean>): Promise<void> {
    for (let next = await this.#take(); next !== undefined; next = await this.#take()) {
      try {
        const wasRead = await handle(next.value);
        if (!wasRead && next.index < (this.#firstSkipped?.index ?? Infinity)) this.#firstSkipped = next;
      } catch (error) {
        this.#fail('ON_PROGRESS_FAILED', error);
      }
    }
  }

  /**
   * Takes the next item, and waits until the service may be queried for it. One worker after another: the iterator is
   * asked for one item at a time, and only one item waits.
   */
  #take(): Promise<Taken | undefined> {
    this.#taking = this.#taking.then(() => this.#takeNext());
    return this.#taking;
  }

  async #takeNext(): Promise<Taken | undefined> {
    const { limit = Infinity } = this.#options;
    try {
      // Items without I/O are promises only: timers and signals would wait for the last of them.
      if (this.#count % itemsPerMacrotask === itemsPerMacrotask - 1) await new Promise(setImmediate);
      const next = this.#count < limit ? await this.#list.next() : undefined;
      if (next === undefined) return undefined;
      const taken = { value: next.value, index: this.#count, previous: this.#last };
      this.#count += 1;
      this.#last = next.value;
      await this.#waitForTurn();
      return taken;
    } catch (error) {
      this.#fail(this.#faultOfList, error);
      return undefined;
    }
  }

  async #waitForTurn(): Promise<void> {
    const { signal } = this.#ending;
    // A loop, because a query under way may fail meanwhile and ask for a longer pause.
    for (let ms = this.#service.throttle.waitMs; ms > 0 && !signal.aborted; ms = this.#service.throttle.waitMs) {
      await pause(ms, { signal });
    }
  }

  #takeNoMore(reason: Stopped): void {
    this.#stopped ??= reason;
    this.#ending.abort();
  }

  #fail(code: Fault['code'], cause: unknown): void {
    this.#fault ??= { code, cause };
    this.#takeNoMore('error');
  }
}
