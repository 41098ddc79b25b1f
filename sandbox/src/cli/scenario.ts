import { requireScenario } from '../service/options.js';
import { transferScenarios, type TransferScenario } from '../service/scenarios.js';

export function toScenario(value: string): TransferScenario {
  requireScenario('scenario', value);
  return value;
}

/** A random seed: a receiver whose store outlives this run would take repeated ids for duplicates. */
export function randomSeed(): number {
  return crypto.getRandomValues(new Uint32Array(1))[0] ?? 0;
}

/** For the help of a command. */
export const scenarioList = transferScenarios
  .map(({ name, description }) => `  ${name.padEnd(18)} ${description}`)
  .join('\n');
