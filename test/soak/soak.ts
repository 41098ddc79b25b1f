import { startRedis, type RedisServer } from '../support/redis.js';
import { AppProcess } from './app-process.js';
import { Load, type Sent } from './load.js';
import type { AppSize } from './messages.js';

export interface SoakOptions {
  /** How many callbacks are sent between two measurements of the app's size. */
  readonly callbacksPerLap: number;
  /** Whether to run another lap, after `laps` of them. */
  readonly goOn: (laps: number) => boolean;
  /** Called after each lap. */
  readonly onLap?: (lap: Lap) => void;
}

export interface Lap {
  readonly callbacks: number;
  readonly heapBytes: number;
}

export interface SoakReport {
  readonly callbacks: number;
  /** How often the app reported each outcome. */
  readonly outcomes: Readonly<Record<string, number>>;
  /** Everything that was wrong: losses, doubles, leaks. Empty for a good soak. */
  readonly faults: readonly string[];
  /** By how many bytes the heap of the app grew for each callback. */
  readonly heapGrowth: number;
}

/** Laps that fill caches, pools and compiled code, and are not judged. */
const warmUpLaps = 3;
/** Laps that are judged: the slope of fewer points is noise. */
const judgedLaps = 5;
export const leastLaps = warmUpLaps + judgedLaps;
const outcomes = [
  'processed',
  'duplicate',
  'handler_failed',
  'invalid',
  'in_progress',
  'conflict',
  'store_unavailable',
];

/** Sends callbacks to an app in laps, and finds what was lost, doubled or leaked. */
export async function soak({ callbacksPerLap, goOn, onLap }: SoakOptions): Promise<SoakReport> {
  const redis = await startRedis();
  const app = new AppProcess(redis.url);
  try {
    const load = new Load(`http://127.0.0.1:${await app.port()}/callbacks`);
    const sent: Sent[] = [];
    const sizes: AppSize[] = [];
    for (let laps = 0; laps < leastLaps || goOn(laps); laps += 1) {
      sent.push(...(await load.send(callbacksPerLap)));
      load.close();
      sizes.push(await app.settledSize());
      onLap?.({ callbacks: sent.length, heapBytes: sizes.at(-1)?.heapBytes ?? 0 });
    }
    const counted = await countOutcomes(redis);
    const judged = sizes.slice(warmUpLaps);
    const heapGrowth = slope(judged.map(({ heapBytes }) => heapBytes)) / callbacksPerLap;
    const faults = [
      ...load.surprises,
      ...(await findMiscounted(redis, sent, counted)),
      ...findLeaks(judged),
      ...((await app.endsByItself()) ? [] : ['the process still runs, although everything is closed']),
    ];
    const totals = Object.entries(counted).map(([name, byId]) => [name, sum(byId)] as const);
    return { callbacks: sent.length, outcomes: Object.fromEntries(totals), faults, heapGrowth };
  } finally {
    await app.kill();
    await redis.stop();
  }
}

type CountById = ReadonlyMap<string, number>;

/** Every id is handled as often as its outcomes say: it fails as often as it was told to, and succeeds once. */
async function findMiscounted(redis: RedisServer, sent: readonly Sent[], counted: Record<string, CountById>) {
  const runs = await readCounts(redis, 'runs');
  const faults: string[] = [];
  for (const { id, failures, responded, broken } of sent) {
    const count = (outcome: string): number => counted[outcome]?.get(id) ?? 0;
    const [succeeded, failed] = [count('processed'), count('handler_failed')];
    if (succeeded !== 1) faults.push(`${id} succeeded ${succeeded} times`);
    if (failed !== failures) faults.push(`${id} failed ${failed} times, and was told to fail ${failures} times`);
    if (runs.get(id) !== succeeded + failed) faults.push(`the handler of ${id} ran ${runs.get(id) ?? 0} times`);
    const ended = succeeded + failed + count('duplicate');
    if (ended < responded || ended > responded + broken)
      faults.push(`${id} has ${ended} outcomes of ${responded} responses`);
  }
  if (runs.size !== sent.length) faults.push(`${runs.size} ids were handled, and ${sent.length} were sent`);
  return faults;
}

/** Compares the last lap with the first one that is judged. The heap is judged by the caller. */
function findLeaks(sizes: readonly AppSize[]): string[] {
  const [first, last] = [sizes[0], sizes.at(-1)];
  if (first === undefined || last === undefined) return ['The app was not measured.'];
  const faults: string[] = [];
  if (last.connections > 0) faults.push(`${last.connections} connections are left open`);
  if (last.listeners > first.listeners) faults.push(`listeners: ${first.listeners}, then ${last.listeners}`);
  for (const [name, count] of Object.entries(last.resources)) {
    const before = first.resources[name] ?? 0;
    if (count > before) faults.push(`${name}: ${before}, then ${count}`);
  }
  return faults;
}

async function countOutcomes(redis: RedisServer): Promise<Record<string, CountById>> {
  const counts: Record<string, CountById> = {};
  for (const outcome of outcomes) counts[outcome] = await readCounts(redis, `outcome:${outcome}`);
  return counts;
}

async function readCounts(redis: RedisServer, key: string): Promise<Map<string, number>> {
  const words = (await redis.command('HGETALL', key)) as string[];
  const counts = new Map<string, number>();
  for (let i = 0; i < words.length; i += 2) counts.set(words[i] ?? '', Number(words[i + 1]));
  return counts;
}

function sum(counts: CountById): number {
  return [...counts.values()].reduce((total, count) => total + count, 0);
}

/** The least-squares slope of values one apart. */
function slope(values: readonly number[]): number {
  const middle = (values.length - 1) / 2;
  const mean = values.reduce((total, value) => total + value, 0) / values.length;
  let [above, below] = [0, 0];
  for (const [i, value] of values.entries()) {
    above += (i - middle) * (value - mean);
    below += (i - middle) ** 2;
  }
  return above / below;
}
