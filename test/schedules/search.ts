import { expect } from 'vitest';
import { explore, toText } from './explore.js';
import type { PlantedFault } from './planted-faults.js';
import { promises } from './promises.js';

/** Expects that a search finds a schedule in which the planted fault breaks its promise. */
export async function expectFound({ situation, fault, promise, isDeep = false }: PlantedFault): Promise<void> {
  const { violation } = await explore(situation, { fault, isBreadthFirst: !isDeep });
  expect(violation === undefined ? 'No promise is broken.' : toText(violation)).toContain(promises[promise]);
}
