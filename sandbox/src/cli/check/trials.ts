import { contradictionTrials } from './contradictions.js';
import { faultTrials } from './faults.js';
import { unbookableTrial, undocumentedTrial } from './invalid.js';
import { outcomeTrials } from './outcomes.js';
import { reversalTrials } from './reversals.js';
import type { CheckedService } from './service.js';
import { stateTrials } from './states.js';
import { strangerTrial } from './stranger.js';
import type { Trial } from './trial.js';

/** The rows of what the documented service does not have. */
const definedTrials: readonly Trial[] = [...reversalTrials, ...stateTrials];

/** All rows of a service but the one that breaks the app, in the order in which they are played. */
export function listTrials({ defined }: CheckedService): readonly Trial[] {
  const all = [
    ...outcomeTrials,
    ...reversalTrials,
    ...faultTrials,
    unbookableTrial,
    ...stateTrials,
    strangerTrial,
    ...contradictionTrials,
    undocumentedTrial,
  ];
  return defined === undefined ? all.filter((each) => !definedTrials.includes(each)) : all;
}
