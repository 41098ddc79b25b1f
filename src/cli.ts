#!/usr/bin/env node
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { parseArgs, type ParseArgsConfig } from 'node:util';
import { isAcknowledgement } from './sandbox/attempt.js';
import {
  transferSandbox,
  transferScenarios,
  type SandboxAttempt,
  type TransferSandbox,
  type TransferScenario,
} from './sandbox/index.js';
import { requireScenario } from './sandbox/options.js';

const scenarioList = transferScenarios.map(({ name, description }) => `  ${name.padEnd(19)} ${description}`).join('\n');

const help = {
  main: `Usage: transfer-callbacks <command> [options]

Commands:
  sandbox    Run the transfer service, imitated from its documentation, on this machine
  trigger    Play one transfer of a scenario against a callback endpoint

  transfer-callbacks <command> --help    What a command takes
  transfer-callbacks --version           Which version this is
`,
  sandbox: `Usage: transfer-callbacks sandbox [options]

Runs the transfer service on this machine and prints every delivery attempt with its answer, until Ctrl+C.

  --callback-url URL   Where callbacks go for transfers created without a callbackUrl
  --port N             Where to listen (default: any free port)
  --speed N            How many times as fast as real time (default 1): at 1000, a retry after 30 s takes 30 ms
  --final-after MS     From creation to the final status, in sandbox time (default 1000)
  --scenario NAME      For transfers whose externalId does not begin with a scenario (default success)
  --seed N             Give the same ids as another run with this seed (default: another one each run)
  --allow-other-hosts  Let callbacks leave this machine
  --json               One JSON object per line

Scenarios, also chosen by the beginning of an externalId, as in lost-attempts-42:
${scenarioList}
`,
  trigger: `Usage: transfer-callbacks trigger <scenario> --to URL [options]

Plays one transfer against a callback endpoint and prints the attempts. Exit code 0 if the last callback was
acknowledged with 2xx, 1 if not, 2 if the arguments are wrong.

  --to URL             The callback endpoint
  --amount N           The amount of the transfer
  --external-id ID     Its externalId (default: another one each run)
  --speed N            How many times as fast as real time (default 1000)
  --seed N             Give the same ids as another run with this seed (default: another one each run)
  --allow-other-hosts  Let callbacks leave this machine
  --json               One JSON object per line

Scenarios:
${scenarioList}
`,
};

const text = { type: 'string' } as const;
const flag = { type: 'boolean' } as const;
const shared = { speed: text, seed: text, 'allow-other-hosts': flag, json: flag, help: flag };
const sandboxFlags = { ...shared, 'callback-url': text, port: text, 'final-after': text, scenario: text };
const triggerFlags = { ...shared, to: text, amount: text, 'external-id': text };

/** The arguments are wrong: said in one line, without a stack. */
class UsageError extends Error {}

/** What the command line calls the options of the sandbox, where it is not the same with hyphens. */
const flagOf: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  sandbox: { finalAfterMs: '--final-after' },
  trigger: { callbackUrl: '--to', scenario: '<scenario>' },
};

async function run([command, ...args]: readonly string[]): Promise<void> {
  if (command === '--version') {
    print(`${version()}\n`);
    return;
  }
  if (command === '--help' || command === undefined) {
    print(help.main);
    return;
  }
  if (command === 'sandbox') return runSandbox(args);
  if (command === 'trigger') return runTrigger(args);
  throw new UsageError(`Unknown command ${JSON.stringify(command)}; known are sandbox and trigger.`);
}

async function runSandbox(args: readonly string[]): Promise<void> {
  const { values, positionals } = parsedArgs(args, sandboxFlags);
  if (values.help) {
    print(help.sandbox);
    return;
  }
  if (positionals[0] !== undefined) throw new UsageError(`Unexpected argument ${JSON.stringify(positionals[0])}.`);
  const { json = false, 'callback-url': callbackUrl } = values;
  const seed = numberOf('--seed', values.seed) ?? anySeed();
  const sandbox = await transferSandbox({
    callbackUrl,
    seed,
    port: numberOf('--port', values.port),
    speed: numberOf('--speed', values.speed),
    finalAfterMs: numberOf('--final-after', values['final-after']),
    scenario: values.scenario === undefined ? undefined : scenarioNamed(values.scenario),
    allowOtherHosts: values['allow-other-hosts'],
    onAttempt(attempt) {
      print(json ? line({ type: 'attempt', ...attempt }) : row(attempt, new Date(attempt.sentAtMs).toISOString()));
    },
  });
  const { baseUrl, keys } = sandbox;
  // Before anybody knows that it has started, and may end it.
  const stopped = Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
  print(json ? line({ type: 'started', baseUrl, ...keys.valid, seed }) : greeting(sandbox, seed, callbackUrl));
  await stopped;
  await sandbox.close();
}

function greeting({ baseUrl, keys }: TransferSandbox, seed: number, callbackUrl: string | undefined): string {
  const { apiKey, apiSecret } = keys.valid;
  const body = { amount: 15_000, ...(callbackUrl === undefined && { callbackUrl: 'http://localhost:3000/callbacks' }) };
  const headers = ['Content-Type: application/json', `x-api-key: ${apiKey}`, `x-api-secret: ${apiSecret}`];
  return `${paint('bold', 'The transfer service, imitated from its documentation')}

  Base URL    ${paint('cyan', baseUrl)}
  API key     ${apiKey}
  API secret  ${apiSecret}
  Seed        ${seed}

Create a transfer, with an "externalId" such as "lost-attempts-42" for a scenario of its own:

  curl ${baseUrl}/transactions/transfer ${headers.map((each) => `-H '${each}'`).join(' ')} -d '${JSON.stringify(body)}'

`;
}

async function runTrigger(args: readonly string[]): Promise<void> {
  const { values, positionals } = parsedArgs(args, triggerFlags);
  if (values.help) {
    print(help.trigger);
    return;
  }
  const [name, excess] = positionals;
  if (name === undefined) throw new UsageError('Expected a scenario: transfer-callbacks trigger <scenario> --to URL.');
  if (excess !== undefined) throw new UsageError(`Unexpected argument ${JSON.stringify(excess)}.`);
  const scenario = scenarioNamed(name);
  const { to, json = false, 'external-id': externalId } = values;
  if (to === undefined) throw new UsageError('Expected --to URL, the callback endpoint.');
  const amount = numberOf('--amount', values.amount);

  let firstMs: number | undefined;
  const sandbox = await transferSandbox({
    callbackUrl: to,
    scenario,
    finalAfterMs: 0,
    speed: numberOf('--speed', values.speed) ?? 1_000,
    seed: numberOf('--seed', values.seed) ?? anySeed(),
    allowOtherHosts: values['allow-other-hosts'],
    onAttempt(attempt) {
      firstMs ??= attempt.sentAtMs;
      const seconds = `${((attempt.sentAtMs - firstMs) / 1_000).toFixed(1)} s`;
      print(json ? line({ type: 'attempt', ...attempt }) : row(attempt, seconds.padStart(8)));
    },
  });
  // Before its own beginning chooses another one.
  if (externalId !== undefined) sandbox.setScenario(externalId, scenario);
  const { apiKey, apiSecret } = sandbox.keys.valid;
  const created = await fetch(`${sandbox.baseUrl}/transactions/transfer`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'x-api-key': apiKey, 'x-api-secret': apiSecret },
    body: JSON.stringify({ amount, externalId }),
  });
  if (!created.ok) {
    await sandbox.close();
    throw new UsageError(((await created.json()) as { message: string }).message);
  }
  await sandbox.idle();
  const acknowledged = sandbox.transfers().every(({ delivered }) => delivered);
  await sandbox.close();

  const silent = sandbox.attempts.length === 0;
  if (json) print(line({ type: 'result', scenario, attempts: sandbox.attempts.length, acknowledged }));
  else if (silent) print('No callback was sent: in this scenario only a query tells the outcome.\n');
  else print(acknowledged ? paint('green', 'Acknowledged.\n') : paint('red', 'Not acknowledged.\n'));
  process.exitCode = acknowledged || silent ? 0 : 1;
}

function parsedArgs<const T extends NonNullable<ParseArgsConfig['options']>>(args: readonly string[], options: T) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    // Node adds advice on `--` after the first sentence.
    throw new UsageError(`${String((error as Error).message.split('. ')[0]).replace(/\.$/, '')}.`);
  }
}

function numberOf(name: string, value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  if (/^\d+(\.\d+)?$/.test(value)) return Number(value);
  throw new UsageError(`Expected ${name} to be a number, got ${JSON.stringify(value)}.`);
}

function scenarioNamed(value: string): TransferScenario {
  requireScenario('scenario', value);
  return value;
}

/** A receiver whose store outlives this run would take transfers with the ids of the last one for duplicates. */
function anySeed(): number {
  return crypto.getRandomValues(new Uint32Array(1))[0] ?? 0;
}

function row({ externalId, number, answer }: SandboxAttempt, when: string): string {
  const said = 'status' in answer ? String(answer.status) : answer.error;
  // An externalId is the merchant's text: a control character in it would rewrite the line.
  const name = externalId.replace(/[\p{Cc}\p{Cf}]/gu, '?');
  return `${paint('dim', when)}  ${name}  attempt ${number}  ${paint(isAcknowledgement(answer) ? 'green' : 'red', said)}\n`;
}

const line = (value: object): string => `${JSON.stringify(value)}\n`;

function print(output: string): void {
  process.stdout.write(output);
}

const colours = { bold: 1, dim: 2, red: 31, green: 32, cyan: 36 };

function paint(colour: keyof typeof colours, words: string): string {
  return process.stdout.isTTY && !process.env.NO_COLOR ? `\u001b[${colours[colour]}m${words}\u001b[0m` : words;
}

function version(): string {
  const file = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  return (JSON.parse(file) as { version: string }).version;
}

/** A message of the sandbox with its options named as on the command line. */
function inFlags(message: string, command = ''): string {
  const kebab = (name: string): string => `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
  return message.replace(/`(\w+)`/g, (_, name: string) => flagOf[command]?.[name] ?? kebab(name));
}

const args = process.argv.slice(2);

process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
  if (code !== 'EPIPE') {
    process.stderr.write(`transfer-callbacks: ${message}\n`);
    process.exit(1);
  }
  // Whoever read the pipe, such as `head`, has seen enough. A trigger still ends with its own code.
  if (args[0] === 'sandbox') process.exit(0);
});

run(args).catch((error: unknown) => {
  const { message, code } = error as Error & { code?: string };
  const wrong = error instanceof UsageError || code === 'INVALID_OPTION';
  process.stderr.write(`transfer-callbacks: ${wrong ? inFlags(message, args[0]) : message}\n`);
  process.exitCode = wrong ? 2 : 1;
});
