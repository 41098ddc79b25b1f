import { expect } from 'vitest';
import { explore, play } from './explore.js';
import type { PlantedFault } from './planted-faults.js';
import { promises } from './promises.js';
import type { Situation } from './situations.js';

/** Expects that no schedule of a situation breaks a promise, and that there are some. Throws the shortest one that does. */
export async function expectEverySchedule(situation: Situation): Promise<void> {
  const { isExhausted, schedules, violation } = await explore(situation);
  if (violation !== undefined) {
    const shortest = await explore(situation, { limitMs: 60_000, isBreadthFirst: true });
    throw new Error(shortest.violation ?? violation);
  }
  expect(isExhausted).toBe(true);
  expect(schedules).toBeGreaterThan(0);
}

/** Expects that the planted fault breaks its promise in the schedule that is written down, or that a search finds one. */
export async function expectFound({ situation, fault, promise, schedule }: PlantedFault): Promise<void> {
  if (schedule !== undefined) expect(await play(situation, schedule)).toBeUndefined();
  const violation =
    schedule === undefined
      ? (await explore(situation, { fault, isBreadthFirst: true })).violation
      : await play(situation, schedule, fault);
  expect(violation ?? 'No promise is broken.').toContain(promises[promise]);
}
