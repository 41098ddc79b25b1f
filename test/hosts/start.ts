import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { hasEnded, kill, tied } from '../support/programs/child.js';
import { freePort, isListening } from '../support/servers/port.js';
import { cases, send, token, type Reply } from './cases.js';
import type { Host } from './hosts.js';
import { hostsFolder } from './programs.js';

/** A host starts in seconds. On a busy machine it takes several times as long. */
const startMs = 60_000;
const buildMs = 300_000;

/** Without these, hosts write into the home of the user or call their makers. */
export const quiet = {
  NEXT_TELEMETRY_DISABLED: '1',
  DENO_DIR: join(hostsFolder, 'node_modules/.deno'),
  DENO_NO_UPDATE_CHECK: '1',
};

/** Sends all cases in order to a host. */
export const tryHost = (host: Host): Promise<Reply[]> =>
  withHost(host, async (url) => {
    const replies: Reply[] = [];
    for (const each of cases) replies.push(await send(url, each));
    return replies;
  });

/** Starts a host and what it needs, resolves with what `use` does, and stops them. */
export async function withHost<T>(host: Host, use: (url: string) => Promise<T>): Promise<T> {
  const servers = await host.startServers?.();
  try {
    const { child, url, output } = await startHost(host, servers?.env);
    try {
      return await use(url);
    } catch (error) {
      throw failed(host, error, output());
    } finally {
      await kill(child);
    }
  } finally {
    await servers?.stop();
  }
}

/** Builds a host, and starts it on a free port. */
export async function startHost(host: Host, env: NodeJS.ProcessEnv = {}) {
  const environment: NodeJS.ProcessEnv = { ...process.env, ...quiet, ...env, CALLBACK_TOKEN: token, NODE_OPTIONS: '' };
  delete environment.NODE_ENV; // Vitest sets it to `test`. Hosts start without it.
  if (host.build !== undefined) await runToEnd(host.build(), environment);
  const port = await freePort();
  const [program = '', ...args] = host.command(port);
  const child = tied(
    spawn(program, args, {
      cwd: hostsFolder,
      env: { ...environment, PORT: String(port) },
      stdio: ['ignore', 'pipe', 'pipe'],
    }),
  );
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (printed += text));
  }
  try {
    await waitUntilListening(child, port);
  } catch (error) {
    await kill(child);
    throw failed(host, error, printed);
  }
  return { child, url: `http://127.0.0.1:${port}/callbacks/transfers`, output: () => printed };
}

function failed({ name }: Host, error: unknown, printed: string): Error {
  return new Error(`${name} failed: ${(error as Error).message}\nIt printed:\n${printed}`, { cause: error });
}

async function runToEnd([program = '', ...args]: readonly string[], env: NodeJS.ProcessEnv): Promise<void> {
  try {
    await promisify(execFile)(program, args, { cwd: hostsFolder, env, timeout: buildMs, killSignal: 'SIGKILL' });
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    throw new Error(`${args.join(' ')} failed:\n${stdout}\n${stderr}`, { cause: error });
  }
}

async function waitUntilListening(child: ChildProcess, port: number): Promise<void> {
  const giveUpAt = Date.now() + startMs;
  while (!(await isListening(port))) {
    if (hasEnded(child)) throw new Error('it ended before it listened.');
    if (Date.now() > giveUpAt) throw new Error(`it did not listen within ${startMs} ms.`);
    await pause(50);
  }
}
