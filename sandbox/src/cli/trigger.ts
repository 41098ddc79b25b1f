import { isAcknowledgement } from '../attempt/attempt.js';
import { transferSandbox } from '../index.js';
import { judgeAttempts } from '../service/scenarios.js';
import { allowPositionals, flag, parseArguments, text, toNumber, UsageError } from '../../../src/cli/arguments.js';
import { attemptRows } from './attempt-rows.js';
import { createTransfer } from './create-transfer.js';
import { sendFile } from './trigger-data.js';
import { configFile, findConfigFile } from '../../../src/cli/config-file.js';
import { callbackHelp, callbackOptions, findEndpoint, requireUrl, toHint } from './endpoint-options.js';
import { jsonLine, paint, print } from '../../../src/cli/terminal.js';
import { scenarioList, toScenario } from './scenario.js';

export const help = `Usage: transfer-sandbox trigger <scenario> [--to URL] [options]
       transfer-sandbox trigger --data FILE [--to URL] [options]

Plays one transfer against a callback endpoint and prints the attempts, with the
seconds at which the service plans them, and their responses. Exit code 0 if the
endpoint responded as it should in this scenario, 1 if not, 2 if the arguments
are wrong.

With --data it sends the bytes of a file once, such as a payload that you have
changed by hand, and exits with 0 if they were acknowledged.

  --to URL                   The callback endpoint
  --config FILE              In place of --to, a module that exports callbackUrl
                             and callbackHeaders. Default:
                             ${configFile}, .js or .cjs
${callbackHelp}
  --data FILE                Send this payload instead of a transfer
  --amount N                 The amount of the transfer
  --external-id ID           Its externalId (default: made up from the seed)
  --speed N                  How many times as fast as real time (default 1000)
  --seed N                   Repeats the ids of another run (default: random)
  --json                     Print one JSON object per line

Scenarios:
${scenarioList}
`;

const options = {
  ...callbackOptions,
  to: text,
  data: text,
  amount: text,
  'external-id': text,
  speed: text,
  seed: text,
  json: flag,
};

/** Plays one transfer and judges the responses. */
export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = parseArguments(args, options);
  const [name] = positionals;
  const { to, data, json = false, 'external-id': externalId } = values;
  if (name === undefined && data === undefined) {
    throw new UsageError('Expected a scenario, such as success: transfer-sandbox trigger success --to URL.');
  }
  allowPositionals(positionals, data === undefined ? 1 : 0);
  const scenario = toScenario(name ?? 'success');
  const file = to === undefined ? findConfigFile(values.config) : undefined;
  const endpoint = await findEndpoint('--to', to, file, values);
  if (endpoint.callbackUrl === undefined) {
    throw new UsageError(`Expected --to URL, the callback endpoint, or a callbackUrl exported from ${configFile}.`);
  }
  if (data !== undefined) return sendFile(data, endpoint, json);
  if (externalId === '') throw new UsageError('Expected --external-id to be a string of at least one character.');
  // The sandbox would name its own option.
  if (typeof endpoint.callbackUrl === 'function') {
    const url = endpoint.callbackUrl(externalId ?? crypto.randomUUID());
    requireUrl('what callbackUrl returns', url, endpoint.allowOtherHosts);
  }
  const amount = toNumber('--amount', values.amount);

  let firstAtMs: number | undefined;
  const sandbox = await transferSandbox({
    ...endpoint,
    scenario,
    finalAfterMs: 0,
    speed: toNumber('--speed', values.speed) ?? 1_000,
    seed: toNumber('--seed', values.seed),
    onAttempt(attempt) {
      firstAtMs ??= attempt.plannedAtMs;
      const when = `${(attempt.plannedAtMs - firstAtMs) / 1_000} s`.padStart(6);
      print(json ? jsonLine({ type: 'attempt', ...attempt }) : attemptRows(attempt, when));
    },
  });
  try {
    // Otherwise the beginning of the externalId would choose the scenario.
    if (externalId !== undefined) sandbox.setScenario(externalId, scenario);
    await createTransfer(sandbox, { amount, externalId });
    await sandbox.idle();
  } finally {
    await sandbox.close();
  }

  const { attempts } = sandbox;
  const verdict = judgeAttempts(scenario, attempts);
  const acknowledged = attempts.some(({ response }) => isAcknowledgement(response));
  if (json) {
    print(jsonLine({ type: 'result', scenario, attempts: attempts.length, acknowledged, ...verdict }));
  } else {
    const last = attempts.at(-1);
    if (!verdict.passed && last !== undefined) print(toHint(last.response, last.reason));
    print(`${verdict.passed ? paint('green', 'Passed.') : paint('red', 'Not passed.')} ${verdict.because}\n`);
  }
  return verdict.passed ? 0 : 1;
}
