import { describeGiven } from '../lib/checks.js';
import type { TransferCallbackError } from '../lib/errors.js';
import { adviseName, describeInvalid, UsageError } from './arguments.js';
import { messageOf, print, printable, stdout } from './terminal.js';

interface Command {
  readonly help: string;
  /** Resolves with the exit code. */
  readonly run: (args: readonly string[]) => Promise<number>;
}

/** A command line, of one package or the other. */
export interface Program {
  readonly name: string;
  readonly version: () => string;
  readonly help: string;
  readonly commands: ReadonlyMap<string, Command>;
  /** What runs if no command is named. Without it, the help is printed. */
  readonly defaultCommand?: string;
  /** By command, options that are not called the same with hyphens, and variables. */
  readonly flags: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** The commands that go on without a reader. */
  readonly needNoReader: readonly string[];
  /** By command, the exit code of a failure. Default: 1. */
  readonly failureCodes?: Readonly<Record<string, number>>;
}

/** Runs a command line with these arguments. Resolves with the exit code. Never rejects. */
export async function run(program: Program, args: readonly string[]): Promise<number> {
  const all = withDefault(program, args);
  try {
    return await runCommand(program, all);
  } catch (error) {
    return failWith(error, program, all[0] ?? '');
  }
}

/** Writes one sentence. Returns the exit code of what failed. */
function failWith(error: unknown, program: Program, command: string): number {
  const invalid = error as Partial<TransferCallbackError>;
  const { code, option } = invalid;
  const isUsage = code === 'INVALID_ARGUMENT' || error instanceof UsageError;
  const message = option === undefined ? messageOf(error) : describeInvalid(toFlag(program, command, option), invalid);
  process.stderr.write(`${program.name}: ${message.split('\n').map(printable).join('\n')}\n`);
  return isUsage ? 2 : toFailureCode(program, command);
}

function toFailureCode({ failureCodes }: Program, command: string): number {
  return failureCodes?.[command] ?? 1;
}

/** Runs the command line of this process, and ends it. */
export function runProgram(program: Program): void {
  const args = process.argv.slice(2);
  const [command = ''] = withDefault(program, args);
  stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
    // EIO: the terminal is gone.
    if (code !== 'EPIPE' && !(code === 'EIO' && stdout.isTTY)) {
      process.stderr.write(`${program.name}: ${message}\n`);
      process.exit(1);
    }
    // The reader of the pipe, such as `head`, has seen enough.
    if (!program.needNoReader.includes(command)) exit(0);
  });
  // Without a listener, a reader of standard error that has gone would end the command.
  process.stderr.on('error', () => undefined);

  function fail(error: unknown): void {
    end(failWith(error, program, command));
  }

  void run(program, args).then(end);

  // Nothing is left that could resume the command. Without this, Node would end with 0.
  process.on('beforeExit', () => {
    fail(
      new Error('The command cannot finish: your app waits for something that never comes, such as a lost connection.'),
    );
  });
  // A driver, or the module of an app, may throw where nobody waits for it.
  process.on('uncaughtException', fail);
  // The module of an app may end the process, for example at SIGTERM: what is left would look handled.
  process.on('exit', (exitCode) => {
    if (hasEnded || exitCode !== 0) return;
    process.stderr.write(`${program.name}: Your app has ended the process before the command had finished.\n`);
    process.exitCode = toFailureCode(program, command);
  });
}

/** Whether the exit code comes from the command. */
let hasEnded = false;

function exit(exitCode: number): void {
  hasEnded = true;
  process.exit(exitCode);
}

const helpWords = ['help', '--help', '-h'];
const versionWords = ['--version', '-v'];

function withDefault({ defaultCommand }: Program, args: readonly string[]): readonly string[] {
  const [first = '-'] = args;
  const isOption = first.startsWith('-') && ![...helpWords, ...versionWords].includes(first);
  return defaultCommand !== undefined && isOption ? [defaultCommand, ...args] : args;
}

async function runCommand({ version, help, commands }: Program, [name, ...args]: readonly string[]): Promise<number> {
  if (name !== undefined && versionWords.includes(name)) {
    print(`${version()}\n`);
    return 0;
  }
  const wantsHelp = name === undefined || helpWords.includes(name);
  const [asked, ...rest] = wantsHelp ? args : [name, ...args];
  if (asked === undefined) {
    print(help);
    return 0;
  }
  const command = commands.get(asked);
  if (command === undefined) {
    throw new UsageError(`Unknown command: got ${describeGiven(asked)}${adviseName(asked, [...commands.keys()])}`);
  }
  if (wantsHelp || rest.includes('--help') || rest.includes('-h')) {
    print(command.help);
    return 0;
  }
  return command.run(rest);
}

/** Returns what an option is called on the command line. */
function toFlag({ flags }: Program, command: string, option: string): string {
  // An option such as `callbackHeaders.x-token` is one of its entries.
  const [name = ''] = option.split('.');
  return flags[command]?.[name] ?? `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** Ends the process once everything is printed: the connections of an app would keep it alive. */
function end(exitCode: number): void {
  process.exitCode = exitCode;
  stdout.write('', () => {
    // The listener of `error` is called after this.
    setImmediate(exit, exitCode);
  });
}
