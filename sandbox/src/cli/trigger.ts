import { isAcknowledgement } from '../attempt/attempt.js';
import { transferSandbox } from '../index.js';
import type { SandboxAttempt } from '../service/series.js';
import { judgeAttempts, requireScenario } from '../service/scenarios.js';
import { allowPositionals, flag, parseArguments, text, toNumber, UsageError } from '../../../src/cli/arguments.js';
import { attemptRows } from './attempt-rows.js';
import { loadDefinition, loadService, requireServiceValue } from './check/load-service.js';
import { reportOrigin } from './check/report.js';
import { createTransfer } from './create-transfer.js';
import { sendFile } from './trigger-data.js';
import { judgeReversal, playable, playDefined, toPlayable, type Play } from './trigger-service.js';
import { configFile, findConfigFile } from '../../../src/cli/config-file.js';
import {
  callbackHelp,
  callbackOptions,
  findEndpoint,
  missingUrl,
  scenarioList,
  toHint,
  toUrl,
} from './endpoint-options.js';
import { jsonLine, paint, print, wrap } from '../../../src/cli/terminal.js';

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
  --service FILE|NAME        Another service, as for check. If its verifier can
                             sign, it signs with the environment variable
                             CALLBACK_SECRET or the secret of the definition.
                             With --data it signs the bytes
  --success FILE             A sample of a success of that service, as JSON or a
                             form. Its ids are replaced
  --failed FILE              A sample of a failure
  --reversed FILE            A sample of a reversal, for the scenario reversed
  --amount N                 The amount of the transfer
  --external-id ID           Its externalId (default: made up)
  --speed N                  How many times as fast as real time (default 1000)
  --json                     Print one JSON object per line. An attempt has its
                             \`body\` as it was sent

Scenarios:
${scenarioList}

${wrap(`With --service: ${playable.join(', ')}, the last one in JSON only.`, 80).join('\n')}
`;

const options = {
  ...callbackOptions,
  to: text,
  data: text,
  service: text,
  success: text,
  failed: text,
  reversed: text,
  amount: text,
  'external-id': text,
  speed: text,
  json: flag,
};

type Values = ReturnType<typeof parseArguments<typeof options>>['values'];

/** Plays one transfer and judges the responses. */
export async function run(args: readonly string[]): Promise<number> {
  requireServiceValue(args);
  const { values, positionals } = parseArguments(args, options);
  const [name] = positionals;
  const { to, data, service: definition, json = false, 'external-id': externalId } = values;
  if (name === undefined && data === undefined) {
    throw new UsageError('Expected a scenario, such as success: transfer-sandbox trigger success --to URL.');
  }
  allowPositionals(positionals, data === undefined ? 1 : 0, '--to');
  const scenario = definition === undefined ? requireScenario(name ?? 'success') : toPlayable(name ?? 'success');
  requireFit(values);
  const file = to === undefined ? findConfigFile(values.config) : undefined;
  const endpoint = await findEndpoint('--to', to, file, values);
  if (endpoint.callbackUrl === undefined) throw new UsageError(missingUrl);
  // The address may be signed. If a function makes the address, it has the externalId.
  const url = typeof endpoint.callbackUrl === 'string' ? endpoint.callbackUrl : undefined;
  if (data !== undefined) {
    const signed = definition === undefined ? undefined : await loadDefinition(definition, url);
    return sendFile(data, endpoint, { json, definition: signed });
  }
  if (externalId === '') throw new UsageError('Expected --external-id to be a string of at least one character.');

  const { service, origin } =
    definition === undefined ? {} : await loadService({ ...values, service: definition }, url);
  if (origin !== undefined) reportOrigin(origin, json);
  const attempts: SandboxAttempt[] = [];
  const play: Play = {
    ...{ scenario, endpoint, externalId, speed: toNumber('--speed', values.speed) ?? 1_000 },
    record(attempt) {
      attempts.push(attempt);
      const sinceMs = attempt.plannedAtMs - (attempts[0] ?? attempt).plannedAtMs;
      const when = `${sinceMs / 1_000} s`.padStart(6);
      const describe = service && ((body: string) => service.describe(body));
      print(json ? jsonLine({ type: 'attempt', ...attempt }) : attemptRows(attempt, when, describe));
    },
  };
  await (service === undefined ? playDocumented(values, play) : playDefined(service, play));
  const verdict = scenario === 'reversed' ? judgeReversal(attempts) : judgeAttempts(scenario, attempts, service);
  const { passed, isLess = false, because } = verdict;
  const last = attempts.at(-1);
  if (json) {
    const acknowledged = attempts.some(({ response }) => isAcknowledgement(response));
    print(jsonLine({ type: 'result', scenario, attempts: attempts.length, acknowledged, passed, because, isLess }));
  } else if (passed) {
    print(`${isLess ? paint('yellow', 'Passed, but !') : paint('green', 'Passed.')} ${because}\n`);
  } else {
    const hint = last === undefined ? '' : toHint(last.response, last.reason, service?.signer.canSign);
    print(`${hint}${paint('red', 'Not passed.')} ${because}\n`);
  }
  return passed ? 0 : 1;
}

/** Throws UsageError for an option that another one leaves without a meaning. */
function requireFit({ service, success, failed, reversed, data, amount }: Values): void {
  const hasSample = [success, failed, reversed].some((file) => file !== undefined);
  if (hasSample && service === undefined) throw new UsageError('Expected --service beside --success and --failed.');
  if (hasSample && data !== undefined) throw new UsageError('Expected --data, or --success and --failed, not both.');
  if (service === undefined) return;
  if (amount !== undefined) throw new UsageError('Expected --amount or --service, not both: a sample has its amount.');
}

/** Plays a transfer of the documented service, which the sandbox imitates. */
async function playDocumented({ amount }: Values, play: Play): Promise<void> {
  const { endpoint, externalId, speed, record } = play;
  const scenario = requireScenario(play.scenario);
  // The sandbox would name its own option.
  if (typeof endpoint.callbackUrl === 'function') toUrl(endpoint, externalId ?? crypto.randomUUID());
  const request = { amount: toNumber('--amount', amount), externalId };
  const sandbox = await transferSandbox({ ...endpoint, scenario, finalAfterMs: 0, speed, onAttempt: record });
  try {
    // Otherwise the beginning of the externalId would choose the scenario.
    if (externalId !== undefined) sandbox.setScenario(externalId, scenario);
    await createTransfer(sandbox, request);
    await sandbox.idle();
  } finally {
    await sandbox.close();
  }
}
