/** After so many deletions, and as many as there are entries, the map is made anew. */
const leastDeletions = 1_000;

/**
 * A map whose entries soon go again. V8 keeps the tables that a Map has outgrown, and all that was in them, until its
 * next major collection, and deliveries by the thousand would be copied into the old generation. A new Map refers to
 * none of them.
 */
export class PassingEntries<T> {
  #entries = new Map<string, T>();
  #deletions = 0;

  get(key: string): T | undefined {
    return this.#entries.get(key);
  }

  set(key: string, value: T): void {
    this.#entries.set(key, value);
  }

  delete(key: string): void {
    this.#entries.delete(key);
    this.#deletions += 1;
    if (this.#deletions < leastDeletions + this.#entries.size) return;
    this.#entries = new Map(this.#entries);
    this.#deletions = 0;
  }

  values(): T[] {
    return [...this.#entries.values()];
  }
}
