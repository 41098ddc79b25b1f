import { test } from 'vitest';
import { plantedFaults } from './planted-faults.js';
import { expectFound } from './search.js';

test.each(plantedFaults.filter(({ isLong }) => isLong === true).map((planted) => [planted.title, planted] as const))(
  'a search finds %s',
  (_title, planted) => expectFound(planted),
  180_000,
);
