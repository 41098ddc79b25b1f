import { vi } from 'vitest';
import { patience } from './patience.js';

// Vitest gives up on a condition after one second, which is not long enough on a busy machine.
const { waitFor, waitUntil } = vi;
vi.waitFor = (callback, options) => waitFor(callback, toOptions(options));
vi.waitUntil = (callback, options) => waitUntil(callback, toOptions(options));

function toOptions(given: number | { timeout?: number; interval?: number } = {}): object {
  return { ...patience, ...(typeof given === 'number' ? { timeout: given } : given) };
}
