// Processes of a benchmark: each on its own core where that is possible, and none outlives its parent. And what is made of
// their figures.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';

const children = new Set();
process.once('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});
// Without these a signal would end this process without `exit`.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));

/** Whether `taskset` can keep a process on one of two cores. */
const canPin = cpus().length > 1 && succeeds('taskset', '-c', '0,1', 'true');

function succeeds(command, ...args) {
  try {
    execFileSync(command, args, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** Keeps this process, and what it starts from now on, on core 1: core 0 is for the servers under test. */
export const moveToCore1 = () => moveTo('1');

/** Undoes `moveToCore1`. */
export const moveToAllCores = () => moveTo(`0-${cpus().length - 1}`);

function moveTo(cores) {
  if (canPin) execFileSync('taskset', ['-a', '-c', '-p', cores, String(process.pid)], { stdio: 'ignore' });
}

/**
 * Starts a script of this folder and waits for its first message, which `ready` holds. `core` pins it.
 *
 * The memory store warns once when it is full; then it forgets, as in production.
 */
export async function startNode(script, args = [], { env = {}, core } = {}) {
  const file = fileURLToPath(new URL(`../${script}`, import.meta.url));
  const words = [process.execPath, '--disable-warning=TRANSFER_CALLBACKS_MEMORY_STORE_FULL', file, ...args];
  if (core !== undefined && canPin) words.unshift('taskset', '-c', String(core));
  const child = spawn(words[0], words.slice(1), {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, ...env },
  });
  children.add(child);
  const failed = once(child, 'exit').then(([code, signal]) => {
    children.delete(child);
    throw new Error(`${script} ${args.join(' ')} ended with ${code ?? signal}.`);
  });
  failed.catch(() => undefined);
  const [ready] = await Promise.race([once(child, 'message'), failed]);
  return { child, failed, ready };
}

/** Sends a message to a process and resolves with its next one. */
export async function ask({ child, failed }, question) {
  child.send(question);
  const [response] = await Promise.race([once(child, 'message'), failed]);
  return response;
}

/** The value below which `share` of the values lie, by the nearest rank: a half of an odd number is their median. */
export function percentile(values, share) {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}

/** Ends a process, and resolves when it has ended. */
export async function stop({ child, failed }) {
  child.kill('SIGKILL');
  await failed.catch(() => undefined);
}
