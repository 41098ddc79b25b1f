import { once } from 'node:events';
import { transferSandbox, type TransferSandbox } from '../index.js';
import type { SandboxAttempt } from '../service/series.js';
import { allowPositionals, flag, parseArguments, text, toNumber, UsageError } from '../../../src/cli/arguments.js';
import { openInBrowser } from './browser.js';
import { attemptRows } from './attempt-rows.js';
import { findConfigFile } from '../../../src/cli/config-file.js';
import { callbackHelp, callbackOptions, findEndpoint, scenarioList, unauthorizedHint } from './endpoint-options.js';
import { jsonLine, paint, print } from '../../../src/cli/terminal.js';
import { requireScenario } from '../service/scenarios.js';

export const help = `Usage: transfer-sandbox sandbox [options]

Runs the transfer service on this machine and prints every delivery attempt with
its response, until Ctrl+C.

  --callback-url URL         Where callbacks go for transfers created without a
                             callbackUrl
  --config FILE              In place of --callback-url, a module that exports
                             callbackUrl and callbackHeaders
${callbackHelp}
  --host ADDRESS             Where to listen (default 127.0.0.1; 0.0.0.0 lets
                             other machines in, for example out of a container)
  --port N                   The port to listen on (default: any free port)
  --api-key KEY              The merchant's key, or SANDBOX_API_KEY in the
                             environment (default sandbox-key)
  --api-secret SECRET        Its secret, or SANDBOX_API_SECRET (default
                             sandbox-secret)
  --speed N                  How many times as fast as real time (default 1): at
                             1000, a retry after 30 s takes 30 ms
  --final-after MS           From creation to the final status, in sandbox time
                             (default 1000)
  --scenario NAME            For transfers whose externalId does not begin with
                             a scenario (default success)
  --open                     Open the console, a page that shows every transfer,
                             in the browser
  --no-console               Do not serve the console
  --json                     Print one JSON object per line

Scenarios, chosen by the beginning of an externalId, as in lost-attempts-42:
${scenarioList}
`;

const options = {
  ...callbackOptions,
  'callback-url': text,
  host: text,
  port: text,
  'api-key': text,
  'api-secret': text,
  speed: text,
  'final-after': text,
  scenario: text,
  open: flag,
  'no-console': flag,
  json: flag,
};

/** Runs the sandbox until SIGINT or SIGTERM. */
export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = parseArguments(args, options);
  allowPositionals(positionals, 0, '--callback-url');
  const { json = false, 'callback-url': callbackUrl } = values;
  const apiKey = values['api-key'] ?? process.env.SANDBOX_API_KEY;
  const apiSecret = values['api-secret'] ?? process.env.SANDBOX_API_SECRET;
  if (values.open === true && values['no-console'] === true) {
    throw new UsageError('Expected --open or --no-console, not both.');
  }
  const configFile = values.config === undefined ? undefined : findConfigFile(values.config);
  const endpoint = await findEndpoint('--callback-url', callbackUrl, configFile, values);
  const sandbox = await transferSandbox({
    ...endpoint,
    host: values.host,
    port: toNumber('--port', values.port),
    apiKey,
    apiSecret,
    speed: toNumber('--speed', values.speed),
    finalAfterMs: toNumber('--final-after', values['final-after']),
    scenario: values.scenario === undefined ? undefined : requireScenario(values.scenario),
    console: values['no-console'] !== true,
    onAttempt: json ? printJson : rowPrinter(),
  });
  // Before the greeting: its reader may send a signal immediately.
  const stopped = Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
  const { baseUrl, consoleUrl, keys } = sandbox;
  // A secret that was given is not repeated: it may be a real one.
  const shown = apiSecret === undefined ? keys : undefined;
  const { apiKey: key } = keys.valid;
  print(
    json
      ? jsonLine({ type: 'started', baseUrl, consoleUrl, apiKey: key, ...shown?.valid, keys: shown })
      : greeting(sandbox, endpoint.callbackUrl !== undefined, shown === undefined),
  );
  if (values.open === true && consoleUrl !== undefined) openInBrowser(consoleUrl);
  await stopped;
  await sandbox.close();
  return 0;
}

function printJson(attempt: SandboxAttempt): void {
  print(jsonLine({ type: 'attempt', ...attempt }));
}

function rowPrinter(): (attempt: SandboxAttempt) => void {
  let hinted = false;
  return (attempt) => {
    const { response, plannedAtMs } = attempt;
    print(attemptRows(attempt, new Date(plannedAtMs).toISOString().slice(11, 19)));
    if (hinted || !('status' in response) || response.status !== 401) return;
    hinted = true;
    print(unauthorizedHint);
  };
}

function greeting(
  { baseUrl, consoleUrl, keys }: TransferSandbox,
  hasCallbackUrl: boolean,
  secretIsGiven: boolean,
): string {
  const { valid, expired, revoked, merchantInactive } = keys;
  const secretOf = ({ apiSecret }: { apiSecret: string }, suffix = ''): string =>
    secretIsGiven ? `the one that was given${suffix}` : apiSecret;
  const body = hasCallbackUrl ? { amount: 15_000 } : { callbackUrl: 'http://localhost:3000/callbacks/transfers' };
  return `${paint('bold', 'The transfer service, imitated from its documentation')}

  Base URL    ${paint('cyan', baseUrl)}${consoleUrl === undefined ? '' : `\n  Console     ${paint('cyan', consoleUrl)}`}
  API key     ${valid.apiKey}
  API secret  ${secretOf(valid)}

Keys that are refused, with their secrets:

  Expired     ${expired.apiKey}  ${secretOf(expired, ', -expired')}
  Revoked     ${revoked.apiKey}  ${secretOf(revoked, ', -revoked')}
  Inactive    ${merchantInactive.apiKey}  ${secretOf(merchantInactive, ', -merchant-inactive')}

Create a transfer, with an "externalId" such as "lost-attempts-42" to choose its
scenario:

  curl ${baseUrl}/transactions/transfer \\
    -H 'Content-Type: application/json' \\
    -H 'x-api-key: ${valid.apiKey}' \\
    -H 'x-api-secret: ${secretIsGiven ? '…' : valid.apiSecret}' \\
    -d '${JSON.stringify(body)}'

`;
}
