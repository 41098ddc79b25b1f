interface Due<T> {
  readonly dueMs: number;
  readonly entry: T;
}

/** Keeps entries in the order in which they are due. Entries with the same due time keep the order of `add`. */
export class Agenda<T> {
  #list: Due<T>[] = [];

  /** When the first entry is due. */
  get nextMs(): number | undefined {
    return this.#list[0]?.dueMs;
  }

  add(dueMs: number, entry: T): void {
    this.#list.splice(this.#countUpTo(dueMs), 0, { dueMs, entry });
  }

  /** Removes and returns everything that is due at `ms` or before. */
  take(ms: number): T[] {
    return this.#list.splice(0, this.#countUpTo(ms)).map(({ entry }) => entry);
  }

  clear(): void {
    this.#list = [];
  }

  /** Counts the entries that are due by `ms`, by binary search: 20 000 transfers may be waiting. */
  #countUpTo(ms: number): number {
    let low = 0;
    let high = this.#list.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#list[middle]?.dueMs ?? Infinity) <= ms) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
