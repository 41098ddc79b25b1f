#!/usr/bin/env node
import { createRequire } from 'node:module';
import { describeGiven } from '../lib/checks.js';
import type { TransferCallbackError } from '../node.js';
import { describeInvalid, UsageError } from './arguments.js';
import * as demo from './demo.js';
import * as inspect from './inspect.js';
import * as reconcile from './reconcile.js';
import * as sandbox from './sandbox.js';
import { messageOf, print, printable } from './terminal.js';
import * as trigger from './trigger.js';

const help = `Usage: transfer-callbacks <command> [options]

Commands:
  sandbox    Run the transfer service, imitated from its documentation
  trigger    Play one transfer of a scenario against a callback endpoint
  demo       See a merchant and the service at work
  inspect    Tell what became of one transfer, and what to do
  reconcile  Handle the final transfers whose callback never came

  transfer-callbacks help <command>    Options of a command (-h, --help)
  transfer-callbacks --version         The version of the package (-v)
`;

const commands = new Map([
  ['sandbox', sandbox],
  ['trigger', trigger],
  ['demo', demo],
  ['inspect', inspect],
  ['reconcile', reconcile],
]);

/** Options of the sandbox and the client that are not called the same with hyphens. */
const names: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  sandbox: { finalAfterMs: '--final-after', callbackHeaders: '--header' },
  trigger: { callbackHeaders: '--header', scenario: '<scenario>' },
};

/** Runs the command line. Resolves with the exit code. */
async function run([name, ...args]: readonly string[]): Promise<number> {
  if (name === '--version' || name === '-v') {
    print(`${version()}\n`);
    return 0;
  }
  const wantsHelp = name === undefined || ['help', '--help', '-h'].includes(name);
  const [asked, ...rest] = wantsHelp ? args : [name, ...args];
  if (asked === undefined) {
    print(help);
    return 0;
  }
  const command = commands.get(asked);
  if (command === undefined) {
    throw new UsageError(`Unknown command: got ${describeGiven(asked)}; known are ${[...commands.keys()].join(', ')}.`);
  }
  if (wantsHelp || rest.includes('--help') || rest.includes('-h')) {
    print(command.help);
    return 0;
  }
  return command.run(rest);
}

function version(): string {
  // By the package's own name: the way to the file differs between src and dist.
  const file = createRequire(import.meta.url)('transfer-callbacks/package.json') as { version: string };
  return file.version;
}

/** Returns what an option of the sandbox or the client is called on the command line. */
function toFlag(option: string, command = ''): string {
  // An option such as `callbackHeaders.x-token` is one of its entries.
  const [name = ''] = option.split('.');
  return names[command]?.[name] ?? `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

const args = process.argv.slice(2);

/** What goes on without a reader: a trigger ends with the code of its verdict, and a reconciliation handles all transfers. */
const needNoReader = ['trigger', 'reconcile'];

process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
  if (code !== 'EPIPE') {
    process.stderr.write(`transfer-callbacks: ${message}\n`);
    process.exit(1);
  }
  // The reader of the pipe, such as `head`, has seen enough.
  if (!needNoReader.includes(String(args[0]))) process.exit(0);
});
// Without a listener, a reader of standard error that has gone would end the command.
process.stderr.on('error', () => undefined);

run(args).then(
  (exitCode) => {
    end(exitCode);
  },
  (error: unknown) => {
    fail(error);
  },
);

// Nothing is left that could resume the command. Without this, Node would end with 0.
process.on('beforeExit', () => {
  fail(
    new Error('The command cannot finish: your app waits for something that never comes, such as a lost connection.'),
  );
});
// A driver, or the module of an app, may throw where nobody waits for it.
process.on('uncaughtException', fail);

/** Prints one sentence, and ends with the exit code of what failed. */
function fail(error: unknown): void {
  const invalid = error as Partial<TransferCallbackError>;
  const { code, option } = invalid;
  const message = option === undefined ? messageOf(error) : describeInvalid(toFlag(option, args[0]), invalid);
  process.stderr.write(`transfer-callbacks: ${message.split('\n').map(printable).join('\n')}\n`);
  // The exit code 1 of `inspect` means that a person should look into the transfer.
  end(code === 'INVALID_ARGUMENT' || error instanceof UsageError ? 2 : args[0] === 'inspect' ? 3 : 1);
}

/** Ends the process once everything is printed: the connections of an app would keep it alive. */
function end(exitCode: number): void {
  process.exitCode = exitCode;
  process.stdout.write('', () => {
    // The listener of `error` is called after this.
    setImmediate(() => process.exit());
  });
}
