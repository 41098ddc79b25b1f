/**
 * A map whose entries soon go again. V8 keeps the tables that a Map has outgrown, and all that was in them, until its next
 * major collection: deliveries by the thousand would be copied into the old generation.
 */
export class PassingEntries<T> {
  /** Without a prototype an object is a table from the beginning, and has no name but those that were set. */
  readonly #entries = Object.create(null) as Partial<Record<string, T>>;

  get(key: string): T | undefined {
    return this.#entries[key];
  }

  set(key: string, value: T): void {
    this.#entries[key] = value;
  }

  delete(key: string): void {
    Reflect.deleteProperty(this.#entries, key);
  }

  values(): T[] {
    return Object.values(this.#entries) as T[];
  }
}
