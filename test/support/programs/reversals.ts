import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { transferCallbackListener, type CallbackStore } from 'transfer-callbacks';
import { post } from '../helpers/post.js';
import { race, seededRandom, workByChance, type Race } from '../helpers/reversal-race.js';
import { announced, reversingReceiver } from '../helpers/reversing.js';
import { freePort } from '../servers/port.js';
import { serveAsApp } from './app.js';
import { kill } from './child.js';

export interface ReversalApp<Tx> {
  readonly store: CallbackStore<Tx>;
  /** Writes what a handler books. */
  readonly write: (tx: Tx, booked: string) => PromiseLike<unknown>;
  readonly port: number;
}

/** In a process of its own: serves a receiver whose handlers book, and fail by chance. */
export async function serveReversals<Tx>({ store, write, port }: ReversalApp<Tx>): Promise<void> {
  const random = seededRandom(port);
  const { receiver } = reversingReceiver(store, {
    storeTimeoutMs: 1_000,
    leaseMs: 3_100,
    inFlightWaitMs: 1_000,
    async handle(status, id, { tx }) {
      await workByChance(random);
      await write(tx, `${status} ${id}`);
    },
  });
  await serveAsApp(transferCallbackListener({ receiver }), port);
}

export interface ProcessRace extends Omit<Race, 'deliver'> {
  /** Starts a process of the app on this port. It sends its port when it listens. */
  readonly fork: (port: number) => ChildProcess;
  /** Whether the processes are killed, one after the other. */
  readonly kills: boolean;
}

/** A race of two processes, which may be killed meanwhile and started again. */
export async function raceProcesses({ fork, kills, ...options }: ProcessRace): Promise<string[]> {
  const ports = [await freePort(), await freePort()] as const;
  const start = async (port: number): Promise<ChildProcess> => {
    const child = fork(port);
    await once(child, 'message');
    return child;
  };
  const apps = await Promise.all(ports.map(start));
  const running = { isOver: false };
  const killing = (async () => {
    for (let victim = 0; kills && !running.isOver; victim = 1 - victim) {
      await pause(2_000);
      const [app, port] = [apps[victim], ports[victim]];
      if (app === undefined || port === undefined) throw new Error('There are two apps.');
      await kill(app);
      apps[victim] = await start(port);
    }
  })();
  try {
    return await race({
      ...options,
      async deliver(to, status, id) {
        const response = await post(`http://127.0.0.1:${ports[to]}/`, announced(status, id)).catch(() => undefined);
        return response?.status === 200 || response?.status === 422;
      },
    });
  } finally {
    running.isOver = true;
    await killing;
    await Promise.all(apps.map(kill));
  }
}
