import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { inject, onTestFinished, vi } from 'vitest';

// Each command is a separate process, which takes seconds on a busy machine.
vi.setConfig({ testTimeout: 180_000 });

export const root = fileURLToPath(new URL('../..', import.meta.url));

export interface Surroundings {
  readonly env?: Record<string, string>;
  /** Whether standard output and standard error are a terminal. */
  readonly terminal?: boolean;
  /** What Node imports before the program. */
  readonly imports?: readonly string[];
  readonly stdin?: string;
  /** Where the command runs. Default: the root of the repository. */
  readonly cwd?: string;
}

/** What the machine that runs the tests may have set, and would change the output. */
export const unset = {
  CI: undefined,
  FORCE_COLOR: undefined,
  NO_COLOR: undefined,
  NODE_DISABLE_COLORS: undefined,
  SANDBOX_API_KEY: undefined,
  SANDBOX_API_SECRET: undefined,
};

/** Starts a program as a process. */
export function startProgram(
  file: string,
  args: readonly string[],
  { env, terminal = false, imports = [], stdin = '', cwd = root }: Surroundings = {},
) {
  const first = [...imports, ...(terminal ? [import.meta.resolve('./as-terminal.mjs')] : [])];
  const child = spawn(process.execPath, [...first.map((module) => `--import=${module}`), file, ...args], {
    cwd,
    env: { ...process.env, ...unset, TERM: 'xterm-256color', ...env },
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  child.stdin.on('error', () => undefined); // A command that reads nothing may end first.
  child.stdin.end(stdin);
  const said = { out: '', err: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => (said.out += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said.err += text));
  // On a busy machine every service is slow.
  const ended = once(child, 'close').then(([code]: unknown[]) => {
    return { code, out: said.out, err: said.err.replaceAll(/^Still waiting for .*\n/gm, '') };
  });
  return { child, said, ended };
}

export const start = (args: readonly string[], surroundings?: Surroundings) =>
  startProgram(inject('cli'), args, surroundings);

export const startSandboxCli = (args: readonly string[], surroundings?: Surroundings) =>
  startProgram(inject('sandboxCli'), args, surroundings);
export const runSandboxCli = (...args: string[]) => startSandboxCli(args).ended;

/** The objects of an output with one JSON object per line. */
export function objects(out: string): unknown[] {
  return out
    .trim()
    .split('\n')
    .map((each) => JSON.parse(each) as unknown);
}

export function longestLine(output: string): number {
  return Math.max(...output.split('\n').map((line) => line.length));
}
