/** A sender that is trusted may still send names without end. */
const mostNames = 1_000;

/** Counts the events that the definition of a service ignores, by their names. */
export class IgnoredNames {
  readonly #counts = new Map<string, number>();

  /** Returns how many events of this name have come: 1 for the first. `undefined` if too many names have come before. */
  count(name: string): number | undefined {
    const count = this.#counts.get(name) ?? 0;
    if (count === 0 && this.#counts.size === mostNames) return undefined;
    this.#counts.set(name, count + 1);
    return count + 1;
  }
}
