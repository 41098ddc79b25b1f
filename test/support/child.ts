import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildSync } from 'esbuild';

const running = new Set<ChildProcess>();
/** Where apps are built: in the repository, because they import its packages, and in the folder that the run removes. */
const buildFolder = fileURLToPath(new URL(`../../.test/${process.ppid}/${process.pid}`, import.meta.url));
/** The built files of the apps, by their sources. Tests start an app again after each kill. */
const builds = new Map<string, string>();

// A worker that is stopped in the middle of a test runs no `afterAll`.
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** Sees to it that the child does not outlive this process. */
export function tied<C extends ChildProcess>(child: C): C {
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}

/**
 * Starts an app of this folder in a separate process, with its options in the environment as JSON. It is built first: a
 * process that compiles what it imports takes three times as long to start.
 */
export function forkApp(file: string, variable: string, options: object, output: 'inherit' | 'pipe' = 'inherit') {
  return tied(
    fork(buildApp(file), {
      env: { ...process.env, [variable]: JSON.stringify(options) },
      stdio: ['ignore', output, output, 'ipc'],
    }),
  );
}

function buildApp(file: string): string {
  const built = builds.get(file);
  if (built !== undefined) return built;
  const source = fileURLToPath(new URL(file, import.meta.url));
  const outfile = join(buildFolder, `${basename(file, '.ts')}.mjs`);
  buildSync({ entryPoints: [source], outfile, bundle: true, format: 'esm', platform: 'node', packages: 'external' });
  builds.set(file, outfile);
  return outfile;
}

export function hasEnded({ exitCode, signalCode, pid }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null || pid === undefined;
}

/** Ends the child immediately, even one that is stopped, and waits until it is gone. */
export async function kill(child: ChildProcess): Promise<void> {
  if (hasEnded(child)) return;
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}
