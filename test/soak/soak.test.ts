import { expect, test } from 'vitest';
import { leastLaps, soak } from './soak.js';

/** A delivery that is never freed costs several thousand bytes; a heap this young moves by some tens for each. */
const mostHeapGrowth = 1_000;

test('under load with copies, failures, rubbish and hang-ups, nothing is lost, doubled or leaked', async () => {
  const callbacksPerLap = 200;
  const { callbacks, outcomes, faults, heapGrowth } = await soak({ callbacksPerLap, goOn: () => false });
  expect(faults).toEqual([]);
  expect(callbacks).toBe(leastLaps * callbacksPerLap);
  expect(outcomes).toMatchObject({ processed: callbacks, in_progress: 0, conflict: 0, store_unavailable: 0 });
  expect(heapGrowth).toBeLessThan(mostHeapGrowth);
}, 180_000);
