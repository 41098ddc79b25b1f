import { toPrintable } from '../../lib/text.js';
import type { ListName } from './item.js';

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
export class Repetitions {
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
      this.#remember(id);
      this.#inARow = 0;
      return false;
    }
    this.#inARow += 1;
    if (this.#inARow === repeatedInARow) throw new ListRepeats(describe(this.#list, id));
    return true;
  }

  #remember(id: string): void {
    if (this.#first.size < idsRemembered) {
      this.#first.add(id);
      return;
    }
    if (this.#latest.size === idsRemembered) this.#latest.clear();
    this.#latest.add(id);
  }
}

function describe(list: ListName, id: string): string {
  return (
    `\`${list}\` has yielded ${repeatedInARow} transfers in a row that it had yielded before, the last of them ` +
    `${toPrintable(id)}. Its query does not begin after the last row of the previous page: a Date has no microseconds. ` +
    'Select `created_at::text AS at`, and write `(created_at, id) > ($1::text::timestamptz, $2)`.'
  );
}
