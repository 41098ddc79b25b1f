import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chown, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { end, hasEnded, kill, makeTemporary, removeTemporary, tied } from '../programs/child.js';
import { patienceMs } from '../helpers/patience.js';
import { freePort } from './port.js';

/** A program that serves on a port of the loopback. */
export interface ServerProgram {
  readonly path: string;
  /** It runs there, with its data. */
  readonly folder: string;
  readonly args: (port: number) => readonly string[];
  /** What it prints as soon as clients can connect. */
  readonly ready: string;
  /** Ends it as an administrator would, breaking off every connection. */
  readonly stopSignal: NodeJS.Signals;
  /** Ends it as a crash would. Default `SIGKILL`. */
  readonly crashSignal?: NodeJS.Signals;
  /** Whom it runs as. Default the user of the tests. */
  readonly user?: User | undefined;
}

export interface Server {
  readonly port: number;
  /** Ends it immediately, as a crash would. */
  kill(): Promise<void>;
  /**
   * Stops the process without ending it: it keeps its connections and replies to nothing. `kill` and `stop` still end
   * it.
   */
  freeze(): void;
  /** Lets a frozen server go on with what it has received meanwhile. */
  thaw(): void;
  /** Stops it, breaking off every connection, if it has not ended. Starts it on the same data and port. */
  restart(): Promise<void>;
  /** Ends it and removes its folder. */
  stop(): Promise<void>;
}

interface User {
  readonly uid: number;
  readonly gid: number;
}

const attempts = 20;
const prefix = 'transfer-callbacks-server-';

/** Returns the user for a program that refuses to run as root, if the tests do. Every system has this user. */
export function unprivileged(): User | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const read = (option: string): number => Number(execFileSync('id', [option, 'nobody'], { encoding: 'utf8' }));
  return { uid: read('-u'), gid: read('-g') };
}

/** Makes a folder for a server, in the folder for temporary files: the path of a socket must be short. */
export async function makeFolder(user?: User): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), `${prefix}${process.pid}-`));
  makeTemporary(folder);
  if (user !== undefined) await chown(folder, user.uid, user.gid);
  return folder;
}

/** Removes the folders of processes that have ended without having done so. */
export async function removeAbandonedFolders(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const [, pid] = new RegExp(`^${prefix}(\\d+)-`).exec(name) ?? [];
    if (pid !== undefined && !isRunning(Number(pid))) await rm(join(tmpdir(), name), { recursive: true, force: true });
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Starts a server on a free port. Takes another port if its port has been taken meanwhile. */
export async function startServer(program: ServerProgram): Promise<Server> {
  const { folder, stopSignal, crashSignal = 'SIGKILL' } = program;
  let port = await freePort();
  let child = await launch(program, port);
  for (let attempt = 2; child === 'port taken' && attempt <= attempts; attempt += 1) {
    port = await freePort();
    child = await launch(program, port);
  }
  if (child === 'port taken') throw new Error(`No free port was found in ${attempts} attempts.`);

  let running: ChildProcess = child;
  return {
    port,
    kill: () => end(running, crashSignal),
    freeze() {
      running.kill('SIGSTOP');
    },
    thaw() {
      running.kill('SIGCONT');
    },
    async restart() {
      await end(running, stopSignal);
      const again = await launch(program, port);
      if (again === 'port taken') throw new Error(`The port ${port} was taken while the server was down.`);
      running = again;
    },
    async stop() {
      await end(running, crashSignal);
      await removeTemporary(folder);
    },
  };
}

/** Starts the program on this port, and waits until clients can connect. */
async function launch(program: ServerProgram, port: number): Promise<ChildProcess | 'port taken'> {
  const { path, folder, args, ready, user } = program;
  const env = { ...process.env, LC_ALL: 'C' };
  const child = tied(spawn(path, args(port), { cwd: folder, env, ...user, stdio: ['ignore', 'pipe', 'pipe'] }));
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (printed += text));
  }
  await once(child, 'spawn');
  const giveUpAt = performance.now() + patienceMs;
  while (!printed.includes(ready)) {
    if (hasEnded(child)) {
      if (/address already in use/i.test(printed)) return 'port taken';
      throw new Error(`${path} did not start: ${printed}`);
    }
    if (performance.now() > giveUpAt) {
      await kill(child);
      throw new Error(`${path} was not ready within ${patienceMs} ms: ${printed}`);
    }
    await pause(10);
  }
  return child;
}
