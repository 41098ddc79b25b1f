import { beforeEach, inject, vi } from 'vitest';
import { patienceMs } from './patience.js';
import { requireShortTitles } from './titles.js';

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
