import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import type { TransferCallback } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { expect, onTestFinished } from 'vitest';
import { kill } from './child.js';
import { freePort } from '../servers/port.js';
import { post } from '../helpers/post.js';

export interface LedgerRun {
  /** How many callbacks are delivered. */
  readonly count: number;
  /** Starts a process of the app on this port. It sends its port when it listens. */
  readonly fork: (port: number) => ChildProcess;
  /** Restarts the database. */
  readonly restart: () => Promise<void>;
}

const senders = 32;

function shuffled<T>(items: readonly T[]): T[] {
  return items
    .map((item) => ({ item, place: Math.random() }))
    .sort((a, b) => a.place - b.place)
    .map(({ item }) => item);
}

/**
 * Delivers callbacks one to five times each, to two processes that are killed at random moments, with the database
 * restarted in the middle. Each delivery is repeated until it is acknowledged: nothing is given up. Resolves with the
 * callbacks, and ends the processes after the test.
 */
export async function deliverAll({ count, fork, restart }: LedgerRun): Promise<readonly TransferCallback[]> {
  const children = new Set<ChildProcess>();
  onTestFinished(async () => {
    await Promise.all([...children].map(kill));
  });
  const startApp = async (port: number): Promise<ChildProcess> => {
    const child = fork(port);
    children.add(child);
    const ended = once(child, 'exit').then(() => expect.fail('The app has ended.'));
    ended.catch(() => undefined);
    await Promise.race([once(child, 'message'), ended]);
    return child;
  };
  const ports = [await freePort(), await freePort()] as const;
  const apps = await Promise.all([startApp(ports[0]), startApp(ports[1])]);
  const callbacks = Array.from({ length: count }, (_, index) =>
    index % 3 === 0 ? transferFailed() : transferSucceeded(),
  );
  const deliveries = shuffled(callbacks.flatMap((callback, index) => Array<object>((index % 5) + 1).fill(callback)));
  const planned = deliveries.length;
  let kills = 0;
  let done = false;

  async function sendAll(sender: number): Promise<void> {
    for (let callback = deliveries.pop(); callback !== undefined; callback = deliveries.pop()) {
      for (let turn = sender; ; turn += 1) {
        const status = await post(`http://127.0.0.1:${ports[turn % 2]}/`, callback).then(
          (response) => response.status,
          () => 0,
        );
        if (status === 200) break;
        await pause(50);
      }
    }
  }
  async function killNowAndThen(): Promise<void> {
    while (!done) {
      await pause(200 + Math.random() * 600);
      const victim = Math.random() < 0.5 ? 0 : 1;
      await kill(apps[victim]);
      kills += 1;
      apps[victim] = await startApp(ports[victim]);
    }
  }
  async function restartInTheMiddle(): Promise<void> {
    while (deliveries.length > planned / 2) await pause(20);
    await restart();
  }

  const killing = killNowAndThen();
  await Promise.all([restartInTheMiddle(), ...Array.from({ length: senders }, (_, sender) => sendAll(sender))]);
  done = true;
  await killing;
  // How many there are in the time of a few hundred callbacks depends on the machine.
  expect(kills).toBeGreaterThan(0);
  return callbacks;
}
