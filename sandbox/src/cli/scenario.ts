import { requireScenario } from '../service/options.js';
import { transferScenarios, type TransferScenario } from '../service/scenarios.js';

export function toScenario(value: string): TransferScenario {
  requireScenario('scenario', value);
  return value;
}

/** For the help of a command. */
export const scenarioList = transferScenarios
  .map(({ name, description }) => `  ${name.padEnd(18)} ${description}`)
  .join('\n');
