import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const running = new Set<ChildProcess>();

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

/** Starts an app of this folder in a process of its own, with its options in the environment as JSON. */
export function forkApp(file: string, variable: string, options: object, output: 'inherit' | 'pipe' = 'inherit') {
  return tied(
    fork(fileURLToPath(new URL(file, import.meta.url)), {
      execArgv: ['--import', 'tsx'],
      env: { ...process.env, [variable]: JSON.stringify(options) },
      stdio: ['ignore', output, output, 'ipc'],
    }),
  );
}

export function hasEnded({ exitCode, signalCode, pid }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null || pid === undefined;
}

/** Ends the child at once, even one that is stopped, and waits until it is gone. */
export async function kill(child: ChildProcess): Promise<void> {
  if (hasEnded(child)) return;
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}
