import { copyFile, mkdtemp, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { WriteStream } from 'node:tty';
import { Redis } from 'ioredis';
import { vi } from 'vitest';
import { program as sandboxProgram } from '../../sandbox/src/cli/commands.js';
import { program } from '../../src/cli/commands.js';
import { run as runCommandLine, type Program } from '../../src/cli/program.js';
import { unset, type Surroundings } from './support.js';

/** Runs a command in the process of the test. One at a time: it takes what is written to the streams of the process. */
const inProcess =
  (program: Program) =>
  async (...args: string[]) => {
    const written = { out: '', err: '' };
    const take = (stream: NodeJS.WriteStream, name: keyof typeof written) =>
      vi.spyOn(stream, 'write').mockImplementation((text) => {
        written[name] += String(text);
        return true;
      });
    const streams = [take(process.stdout, 'out'), take(process.stderr, 'err')];
    try {
      const code = await runCommandLine(program, args);
      return { code, ...written };
    } finally {
      for (const stream of streams) stream.mockRestore();
    }
  };
export const runInProcess = inProcess(program);
export const runSandboxInProcess = inProcess(sandboxProgram);

/** Node's own method looks at the environment alone. */
const getColorDepth = (): number => WriteStream.prototype.getColorDepth();

/**
 * Runs a command on an app in the process of the test, with what a process of its own would have. Each run loads the
 * app anew, and ends its connections and listeners.
 */
export async function runOnApp(
  args: readonly string[],
  { env, terminal, stdin = '', cwd }: Surroundings,
  run = runInProcess,
) {
  const { stdout, stderr, stdin: ownStdin } = process;
  const [ownFolder, ownConsole] = [process.cwd(), globalThis.console];
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  const listeners = signals.map((signal) => process.listeners(signal));
  const connect = vi.spyOn(Redis.prototype, 'connect');
  for (const [name, value] of Object.entries({ ...unset, TERM: 'xterm-256color', ...env })) vi.stubEnv(name, value);
  if (terminal === true) {
    const columns = Number(env?.TERMINAL_COLUMNS ?? 80);
    for (const stream of [stdout, stderr]) Object.assign(stream, { isTTY: true, columns, getColorDepth });
  }
  Object.defineProperty(process, 'stdin', { value: Readable.from([stdin], { objectMode: false }) });
  if (cwd !== undefined) process.chdir(await copyOf(cwd));
  try {
    const { code, out, err } = await run(...args);
    return { code, out, err: err.replaceAll(/^Still waiting for .*\n/gm, '') };
  } finally {
    process.chdir(ownFolder);
    globalThis.console = ownConsole;
    Object.defineProperties(process, { stdout: { value: stdout }, stdin: { value: ownStdin } });
    for (const stream of [stdout, stderr]) Object.assign(stream, { isTTY: false, columns: undefined });
    vi.unstubAllEnvs();
    for (const redis of connect.mock.contexts as Redis[]) redis.disconnect();
    connect.mockRestore();
    for (const [index, signal] of signals.entries()) {
      const added = process.listeners(signal).filter((each) => listeners[index]?.includes(each) !== true);
      for (const listener of added) process.off(signal, listener);
    }
  }
}

/** Copies the files of an app into a folder within its own, because a process imports a file once. */
async function copyOf(folder: string): Promise<string> {
  const copy = await mkdtemp(join(folder, 'run-'));
  for (const file of await readdir(folder, { withFileTypes: true })) {
    if (file.isFile()) await copyFile(join(folder, file.name), join(copy, file.name));
  }
  return copy;
}
