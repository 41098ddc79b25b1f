import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, rmSync, symlinkSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildSync } from 'esbuild';

const running = new Set<ChildProcess>();
/**
 * Where apps are built: in the repository, because they import its packages, and in the folder that the run removes.
 */
const buildFolder = fileURLToPath(new URL(`../../../.test/${process.ppid}/${process.pid}`, import.meta.url));
/** The folder of an example may have one of its own, which does not know where the package is. */
const tsconfig = fileURLToPath(new URL('../../../tsconfig.json', import.meta.url));
/** The built files of the apps, by their sources. Tests start an app again after each kill. */
const builds = new Map<string, string>();

/** What this process removes when it ends. */
const temporary = new Set<string>();

/** Sees to it that the child does not outlive this process. */
export function tied<C extends ChildProcess>(child: C): C {
  tidyAtEnd();
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}

/** Sees to it that the folder does not outlive this process. */
export function makeTemporary(folder: string): void {
  tidyAtEnd();
  temporary.add(folder);
}

export async function removeTemporary(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  temporary.delete(folder);
}

let tidiesAtEnd = false;

/**
 * A worker that is stopped in the middle of a test runs no `afterAll`. Vitest ends its workers by a signal, and if
 * Vitest itself is killed, they only lose the connection to it.
 */
function tidyAtEnd(): void {
  if (tidiesAtEnd) return;
  tidiesAtEnd = true;
  process.once('exit', tidy);
  for (const event of ['SIGINT', 'SIGTERM', 'SIGHUP', 'disconnect'] as const) {
    process.once(event, () => {
      tidy();
      process.kill(process.pid, 'SIGKILL');
    });
  }
}

function tidy(): void {
  for (const child of running) child.kill('SIGKILL');
  for (const folder of temporary) rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
}

/**
 * Starts an app in a separate process, which gets its options by `readAppOptions`. Its `file` is relative to this
 * folder. It is built first: a process that compiles what it imports takes three times as long to start.
 */
export function forkApp(file: string, options: object, output: 'inherit' | 'pipe' = 'inherit') {
  return tied(
    fork(buildApp(file), {
      env: { ...process.env, APP_OPTIONS: JSON.stringify(options) },
      stdio: ['ignore', output, output, 'ipc'],
    }),
  );
}

/** Builds an app, once, and returns its file. */
export function buildApp(file: string): string {
  const built = builds.get(file);
  if (built !== undefined) return built;
  const source = fileURLToPath(new URL(file, import.meta.url));
  const folder = join(buildFolder, basename(file, '.ts'));
  const outfile = join(folder, 'app.mjs');
  const bundled = { bundle: true, format: 'esm', platform: 'node', packages: 'external' } as const;
  buildSync({ entryPoints: [source], outfile, tsconfig, ...bundled });
  // The app imports the packages of its folder, if that has some.
  const packages = join(dirname(source), 'node_modules');
  if (existsSync(packages)) symlinkSync(packages, join(folder, 'node_modules'));
  builds.set(file, outfile);
  return outfile;
}

export function hasEnded({ exitCode, signalCode, pid }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null || pid === undefined;
}

/** Ends the child immediately, even one that is frozen, and waits until it is gone. */
export const kill = (child: ChildProcess): Promise<void> => end(child, 'SIGKILL');

/** Ends the child by this signal, even one that is frozen, and waits until it is gone. */
export async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (hasEnded(child)) return;
  const exited = once(child, 'exit');
  child.kill(signal);
  child.kill('SIGCONT');
  await exited;
}
