import { beforeEach, inject, vi } from 'vitest';
import { patienceMs } from './patience.js';

declare module 'vitest' {
  export interface ProvidedContext {
    /** How long a test of this project waits for a condition: less long than it may take. */
    patienceMs?: number;
  }
}

// Vitest gives up on a condition after one second, which is not long enough on a busy machine.
const patience = { timeout: inject('patienceMs') ?? patienceMs, interval: 20 };
const { waitFor, waitUntil } = vi;
vi.waitFor = (callback, options) => waitFor(callback, toOptions(options));
vi.waitUntil = (callback, options) => waitUntil(callback, toOptions(options));

beforeEach(({ task }) => {
  requireShortTitles(task);
});

function toOptions(given: number | { timeout?: number; interval?: number } = {}): object {
  return { ...patience, ...(typeof given === 'number' ? { timeout: given } : given) };
}

const longestTitle = 200;

/** What a title belongs to: a test, or the tests of a `describe`. */
interface Titled {
  readonly name: string;
  readonly suite?: Titled | undefined;
}

/** Throws if a title prints a value in place of its name: a failure would print all of that into the log. */
function requireShortTitles(task: Titled): void {
  for (let each: Titled | undefined = task; each !== undefined; each = each.suite) {
    if (each.name.length <= longestTitle) continue;
    const beginning = each.name.slice(0, 80);
    throw new Error(`Expected a title of at most ${longestTitle} characters, got ${each.name.length}: ${beginning}…`);
  }
}
