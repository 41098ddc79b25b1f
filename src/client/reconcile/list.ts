import { toPrintable } from '../../lib/text.js';
import { findCreationMs, findId, type ListName } from './item.js';
import type { PendingTransfer } from './report.js';

/** What `reconcileTransfers` takes as `pending` and as `paid`. */
export type TransferList = AsyncIterable<PendingTransfer> | Iterable<PendingTransfer>;

/**
 * Takes the transfers of a list one at a time until the signal aborts. Skips a transfer that came before with
 * the same creation time. It skips none of an array, which has an end.
 */
export class ListSource {
  readonly #source: TransferList;
  readonly #signal: AbortSignal;
  #iterator: AsyncIterator<PendingTransfer> | Iterator<PendingTransfer> | undefined;
  /** `undefined` before the first item, while a `next` of the iterator is pending, and after it threw. */
  #state: 'open' | 'done' | undefined;
  #stopWaiting = (): void => undefined;
  readonly #repetitions: Repetitions | undefined;

  constructor(name: ListName, source: TransferList, signal: AbortSignal) {
    this.#source = source;
    this.#signal = signal;
    this.#repetitions = Array.isArray(source) ? undefined : new Repetitions(name);
    // One listener for all items: adding and removing one takes longer than everything else here.
    signal.addEventListener('abort', () => {
      this.#stopWaiting();
    });
  }

  get isDone(): boolean {
    return this.#state === 'done';
  }

  /**
   * Resolves with `undefined` at the end, or when the signal aborts: it does not wait for a pending `next` then.
   * Rejects with the error of the iterator, or with ListRepeats.
   */
  async next(): Promise<{ value: PendingTransfer } | undefined> {
    for (let next = await this.#read(); next !== undefined; next = await this.#read()) {
      const { value } = next;
      if (this.#repetitions?.note(findId(value), findCreationMs(value)) !== true) return next;
    }
    return undefined;
  }

  async #read(): Promise<{ value: PendingTransfer } | undefined> {
    if (this.#state === 'done' || this.#signal.aborted) return undefined;
    this.#state = undefined;
    const next = await new Promise<IteratorResult<PendingTransfer> | undefined>((resolve, reject) => {
      this.#stopWaiting = () => {
        resolve(undefined);
      };
      this.#iterator ??= openIterator(this.#source);
      Promise.resolve(this.#iterator.next()).then(resolve, reject);
    });
    if (next === undefined) return undefined;
    this.#state = next.done === true ? 'done' : 'open';
    return next.done === true ? undefined : next;
  }

  /** Closes an iterator that is not at its end. One whose `next` is pending closes itself later, unobserved. */
  async close(): Promise<void> {
    if (this.#state === 'done') return;
    const closing = Promise.resolve(this.#iterator?.return?.());
    if (this.#state === 'open') await closing;
    else closing.catch(() => undefined);
  }
}

function openIterator(list: TransferList): AsyncIterator<PendingTransfer> | Iterator<PendingTransfer> {
  return Symbol.asyncIterator in list ? list[Symbol.asyncIterator]() : list[Symbol.iterator]();
}

/** A list repeats its transfers, and would never end. The message names the fault of its query. */
export class ListRepeats extends Error {}

/**
 * How many transfers a list may repeat in a row. A list may have a transfer twice, but one that repeats this many
 * has no end.
 */
const repeatedInARow = 1_000;

/** How many ids of one creation time are kept: this many of the first ones, and this many of the latest. */
const idsRemembered = 5_000;

/**
 * Recognises transfers that a list yields again, by their ids among the transfers with the same creation time. A
 * query that reads page by page and does not begin after its last row returns to the first transfer with that time, or
 * repeats the last one.
 */
class Repetitions {
  readonly #list: ListName;
  #createdMs = NaN;
  readonly #first = new Set<string>();
  readonly #latest = new Set<string>();
  #inARow = 0;

  constructor(list: ListName) {
    this.#list = list;
  }

  /**
   * Returns whether the transfer came before. `createdMs` is NaN if its creation is not known. Throws ListRepeats
   * at the 1 000th transfer in a row that did.
   */
  note(id: string, createdMs: number): boolean {
    if (createdMs !== this.#createdMs) {
      this.#createdMs = createdMs;
      this.#first.clear();
      this.#latest.clear();
    }
    if (!this.#first.has(id) && !this.#latest.has(id)) {
      if (this.#latest.size === idsRemembered) this.#latest.clear();
      (this.#first.size < idsRemembered ? this.#first : this.#latest).add(id);
      this.#inARow = 0;
      return false;
    }
    this.#inARow += 1;
    if (this.#inARow < repeatedInARow) return true;
    throw new ListRepeats(
      `\`${this.#list}\` has yielded ${repeatedInARow} transfers in a row that it had yielded before, the last of them ` +
        `${toPrintable(id)}. Its query does not begin after the last row of the previous page: a Date has no microseconds. ` +
        'Select `created_at::text AS at`, and write `(created_at, id) > ($1::text::timestamptz, $2)`.',
    );
  }
}
