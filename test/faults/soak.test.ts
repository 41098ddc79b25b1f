import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import type { TransferCallback } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { expect, onTestFinished, test } from 'vitest';
import { post } from '../support/helpers/post.js';
import { forkApp, kill } from '../support/programs/child.js';
import type { SoakSize } from '../support/programs/soak-app.js';
import { startRedisForTest } from '../support/servers/redis-for-file.js';

/** How long it takes at least: `SOAK_MINUTES=60 npm run test:weekly -- test/faults/soak` takes an hour. */
const minutes = Number(process.env.SOAK_MINUTES ?? 0);
const callbacksPerLap = minutes > 0 ? 4_000 : 200;
/** Laps that fill caches, pools and compiled code, and are not judged; and those that are. */
const [warmUpLaps, judgedLaps] = [3, 5];
/** A delivery that is never freed costs several thousand bytes; a heap this young moves by some tens for each. */
const mostHeapGrowth = minutes > 0 ? 100 : 1_000;

/** A callback that was sent until it was acknowledged. */
interface Sent {
  readonly id: string;
  /** How often its handler was told to fail. */
  readonly failures: number;
}

/** The service sends four times; here nothing but a defect needs more than the handler's failures and one. */
const attempts = 10;

const malformed: readonly (readonly [body: string, type: string])[] = [
  ['{"event":"transfer.success","data":', 'application/json'],
  ['[]', 'application/json'],
  ['{"event":"transfer.success","data":{"id":7}}', 'application/json'],
  ['event=transfer.success', 'application/x-www-form-urlencoded'],
];

/** Sends callbacks as the service does, and as it should not, over connections that are kept alive. */
class Load {
  readonly #url: string;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 64 });
  /** Responses that no delivery should get. */
  readonly surprises: string[] = [];
  #sent = 0;

  constructor(url: string) {
    this.#url = url;
  }

  /**
   * Sends `count` callbacks, 32 at a time, then closes its connections. Half come with copies, failures, rubbish or a
   * hang-up.
   */
  async send(count: number): Promise<Sent[]> {
    const sent: Sent[] = [];
    let begun = 0;
    const work = async (): Promise<void> => {
      while (begun < count) {
        begun += 1;
        sent.push(await this.#sendOne());
      }
    };
    await Promise.all(Array.from({ length: 32 }, work));
    this.#agent.destroy();
    return sent;
  }

  async #sendOne(): Promise<Sent> {
    const turn = (this.#sent += 1);
    const kind = turn % 10;
    const failures = kind === 7 ? 1 + (turn % 2) : 0;
    const make = turn % 3 === 0 ? transferFailed : transferSucceeded;
    const callback = make({ externalId: `${crypto.randomUUID()}-fails-${failures}` });
    const body = JSON.stringify(callback);
    if (kind === 8) {
      const [rubbish, type] = malformed[Math.floor(turn / 10) % malformed.length] ?? ['', ''];
      const status = await this.#post(rubbish, type);
      if (status !== undefined && (status < 400 || status > 499)) this.surprises.push(`a malformed body got ${status}`);
    }
    if (kind === 9) await this.#hangUp(body, turn % 20 === 9);
    if (kind === 6) await Promise.all([1, 2, 3].map(() => this.#post(body)));
    await this.#sendUntilAcknowledged(body);
    if (kind === 5) await this.#sendUntilAcknowledged(body);
    return { id: (callback satisfies TransferCallback).data.id, failures };
  }

  async #sendUntilAcknowledged(body: string): Promise<void> {
    for (let attempt = 0; attempt < attempts; attempt += 1) {
      const status = await this.#post(body);
      if (status === 200) return;
      if (status !== undefined && status !== 500) this.surprises.push(`a callback got ${status}`);
    }
    this.surprises.push(`a callback was not acknowledged in ${attempts} attempts`);
  }

  /** Resolves with the status, or with `undefined` where the connection broke. */
  async #post(body: string, type = 'application/json'): Promise<number | undefined> {
    try {
      const { status } = await post(this.#url, body, { headers: { 'Content-Type': type }, agent: this.#agent });
      return status;
    } catch (error) {
      // The server may close a connection that was kept alive at the moment that it is used again.
      if (String(error).includes('No response')) this.surprises.push(String(error));
      return undefined;
    }
  }

  /** Breaks off in the middle of the body, or when all of it was written and no response has come. */
  async #hangUp(body: string, inTheMiddle: boolean): Promise<void> {
    const bytes = Buffer.from(body);
    const headers = { 'Content-Type': 'application/json', 'Content-Length': bytes.length };
    const sent = request(this.#url, { method: 'POST', agent: this.#agent, headers });
    // Not `once` of node:events, which rejects at the error that breaking off is.
    const closed = new Promise((resolve) => sent.on('error', () => undefined).once('close', resolve));
    await new Promise((resolve) => sent.write(inTheMiddle ? bytes.subarray(0, 100) : bytes, resolve));
    sent.destroy();
    await closed;
  }
}

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
