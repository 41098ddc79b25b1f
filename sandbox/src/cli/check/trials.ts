import { contradictionTrials } from './contradictions.js';
import { faultTrials } from './faults.js';
import { unbookableTrial, undocumentedTrial } from './invalid.js';
import { outcomeTrials } from './outcomes.js';
import { strangerTrial } from './stranger.js';
import type { Trial } from './trial.js';

/** All rows but the one that breaks the app, in the order in which they are played. */
export const trials: readonly Trial[] = [
  ...outcomeTrials,
  ...faultTrials,
  unbookableTrial,
  strangerTrial,
  ...contradictionTrials,
  undocumentedTrial,
];
