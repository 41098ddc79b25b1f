import { Slots } from '../../../src/lib/slots.js';

/** Returns a function that runs at most `limit` calls of `work` per origin concurrently. The others wait. */
export function limitPerOrigin(limit: number) {
  const origins = new Map<string, Slots>();

  return async function runInTurn<T>(url: string, work: () => Promise<T>): Promise<T> {
    const { origin } = new URL(url);
    const slots = origins.get(origin) ?? new Slots(limit);
    origins.set(origin, slots);
    await slots.take();
    try {
      return await work();
    } finally {
      slots.release();
    }
  };
}
