import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, onTestFinished } from 'vitest';
import { freePort } from '../servers/port.js';
import { kill } from './child.js';

/**
 * Starts two processes of an app, and ends them after the test. `fork` starts one on a port, which it sends when it
 * listens. `killWhile` kills one after the other and starts it again. It resolves with how often.
 */
export async function startTwoApps(fork: (port: number) => ChildProcess) {
  const children = new Set<ChildProcess>();
  onTestFinished(async () => {
    await Promise.all([...children].map(kill));
  });
  const start = async (port: number): Promise<ChildProcess> => {
    const child = fork(port);
    children.add(child);
    const ended = once(child, 'exit').then(() => expect.fail('The app has ended.'));
    await Promise.race([once(child, 'message'), ended]);
    return child;
  };
  const ports = [await freePort(), await freePort()] as const;
  const apps = await Promise.all([start(ports[0]), start(ports[1])]);
  const killWhile = async (goesOn: () => boolean): Promise<number> => {
    let kills = 0;
    while (goesOn()) {
      await pause(200 + Math.random() * 600);
      const victim = kills % 2 === 0 ? 0 : 1;
      await kill(apps[victim]);
      kills += 1;
      apps[victim] = await start(ports[victim]);
    }
    return kills;
  };
  return { urls: [`http://127.0.0.1:${ports[0]}/`, `http://127.0.0.1:${ports[1]}/`] as const, killWhile };
}
