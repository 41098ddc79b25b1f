import { expect } from 'vitest';
import { expectPromisesKept, explore, toText } from './explore.js';
import type { PlantedFault } from './planted-faults.js';
import { promises } from './promises.js';
import type { Situation } from './situations.js';

/** Expects that no schedule of a situation breaks a promise, and that there are some. */
export async function expectEverySchedule(situation: Situation): Promise<void> {
  const { isExhausted, schedules } = await expectPromisesKept(situation);
  expect(isExhausted).toBe(true);
  expect(schedules).toBeGreaterThan(0);
}

/** Expects that a search finds a schedule in which the planted fault breaks its promise. */
export async function expectFound({ situation, fault, promise, isDeep = false }: PlantedFault): Promise<void> {
  const { violation } = await explore(situation, { fault, isBreadthFirst: !isDeep });
  expect(violation === undefined ? 'No promise is broken.' : toText(violation)).toContain(promises[promise]);
}
