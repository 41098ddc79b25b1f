import { copyString } from '../lib/text.js';

/** Anybody may send names without end, if no verifier refuses them. */
const mostNames = 1_000;

/** Counts the events that the definition of a service ignores, by their names. */
export class IgnoredNames {
  /** The name that has not come for the longest time is the first one. */
  readonly #counts = new Map<string, number>();

  /**
   * Returns how many events of this name have come: 1 for the first. Forgets a name after 1 000 others. A name must be
   * printable, because that limits its length.
   */
  count(name: string): number {
    const count = (this.#counts.get(name) ?? 0) + 1;
    this.#counts.delete(name);
    this.#counts.set(copyString(name), count);
    if (this.#counts.size > mostNames) this.#counts.delete(String(this.#counts.keys().next().value));
    return count;
  }
}
