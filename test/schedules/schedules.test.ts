import { expect, test } from 'vitest';
import { expectPromisesKept, explore, toText } from './explore.js';
import { plantedFaults } from './planted-faults.js';
import { promises } from './promises.js';
import { everyRun } from './situations.js';

const timeoutMs = 180_000;

test.each(everyRun.map((situation) => [situation.title, situation] as const))(
  'every promise holds in every schedule of %s',
  async (_title, situation) => {
    const { isExhausted, schedules } = await expectPromisesKept(situation);
    expect(isExhausted).toBe(true);
    expect(schedules).toBeGreaterThan(0);
  },
  timeoutMs,
);

test.each(plantedFaults.map((planted) => [planted.title, planted] as const))(
  'a search finds %s',
  async (_title, { situation, fault, promise, isDeep = false }) => {
    const { violation } = await explore(situation, { fault, isBreadthFirst: !isDeep });
    expect(violation === undefined ? 'No promise is broken.' : toText(violation)).toContain(promises[promise]);
  },
  timeoutMs,
);
