import { expect, test } from 'vitest';
import { expectPromisesKept } from './explore.js';
import { plantedFaults } from './planted-faults.js';
import { expectFound } from './search.js';
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

test.each(plantedFaults.filter(({ isLong }) => isLong !== true).map((planted) => [planted.title, planted] as const))(
  'a search finds %s',
  (_title, planted) => expectFound(planted),
  timeoutMs,
);
