import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { forkApp, kill } from '../support/programs/child.js';
import { Load, type Sent, type SoakSize } from '../support/programs/soak-load.js';
import { startRedisForTest } from '../support/servers/redis-for-file.js';

/** How long it takes at least: `SOAK_MINUTES=60 npm run test:weekly -- test/faults/soak` takes an hour. */
const minutes = Number(process.env.SOAK_MINUTES ?? 0);
const callbacksPerLap = minutes > 0 ? 4_000 : 200;
/** Laps that fill caches, pools and compiled code, and are not judged; and those that are. */
const [warmUpLaps, judgedLaps] = [3, 5];
/** A delivery that is never freed costs several thousand bytes; a heap this young moves by some tens for each. */
const mostHeapGrowth = minutes > 0 ? 100 : 1_000;

test(
  'under load with copies, failures, rubbish and hang-ups, nothing is lost, doubled or leaked',
  async () => {
    const redis = await startRedisForTest();
    const app = forkApp('soak-app.ts', { redisUrl: redis.url });
    onTestFinished(() => kill(app));
    const exited = once(app, 'exit');
    const [port] = (await once(app, 'message')) as [number];
    const load = new Load(`http://127.0.0.1:${port}/callbacks`);

    /** Resolves with the size of the app when only its connection to Redis is left. */
    async function measure(): Promise<SoakSize> {
      const ask = async (): Promise<SoakSize> => {
        app.send('size');
        const [size] = (await once(app, 'message')) as [SoakSize];
        return size;
      };
      const giveUpAt = performance.now() + 30_000;
      let size = await ask();
      while (size.sockets > 1 && performance.now() < giveUpAt) {
        await pause(10);
        size = await ask();
      }
      return size;
    }
    async function readCounts(key: string): Promise<Map<string, number>> {
      const words = (await redis.command('HGETALL', key)) as string[];
      return new Map(words.flatMap((word, at) => (at % 2 === 0 ? [[word, Number(words[at + 1])] as const] : [])));
    }

    const sent: Sent[] = [];
    const sizes: SoakSize[] = [];
    const endsAt = performance.now() + minutes * 60_000;
    while (sizes.length < warmUpLaps + judgedLaps || performance.now() < endsAt) {
      sent.push(...(await load.send(callbacksPerLap)));
      sizes.push(await measure());
    }

    expect(load.surprises).toEqual([]);
    const [runs, processed, failed] = [
      await readCounts('runs'),
      await readCounts('processed'),
      await readCounts('handler_failed'),
    ];
    const wrong = sent.filter(
      ({ id, failures }) =>
        processed.get(id) !== 1 || (failed.get(id) ?? 0) !== failures || runs.get(id) !== failures + 1,
    );
    expect(wrong).toEqual([]);
    expect(runs.size).toBe(sent.length);
    for (const never of ['in_progress', 'conflict', 'store_unavailable'])
      expect(await readCounts(never)).toEqual(new Map());

    const [first, last] = [sizes[warmUpLaps] ?? expect.fail(), sizes.at(-1) ?? expect.fail()];
    expect(last.sockets).toBeLessThanOrEqual(1);
    expect(last.timers).toBeLessThanOrEqual(first.timers);
    expect(last.listeners).toBeLessThanOrEqual(first.listeners);
    const judgedCallbacks = callbacksPerLap * (sizes.length - warmUpLaps - 1);
    expect((last.heapBytes - first.heapBytes) / judgedCallbacks).toBeLessThan(mostHeapGrowth);

    app.send('end');
    await exited;
  },
  minutes * 60_000 + 180_000,
);
