import { test } from 'vitest';
import { plantedFaults } from './planted-faults.js';
import { expectEverySchedule, expectFound } from './search.js';
import { everyRun } from './situations.js';

const timeoutMs = 180_000;

test.each(everyRun.map((situation) => [situation.title, situation] as const))(
  'every promise holds in every schedule of %s',
  (_title, situation) => expectEverySchedule(situation),
  timeoutMs,
);

test.each(plantedFaults.filter(({ isLong }) => isLong !== true).map((planted) => [planted.title, planted] as const))(
  'a search finds %s',
  (_title, planted) => expectFound(planted),
  timeoutMs,
);
