import { createHash } from 'node:crypto';
import type { Fault, Histories } from './process.js';
import type { Situation } from './situations.js';
import { World } from './world.js';

/** What a search has found, at its beginning. */
const nothing = {
  /** How often the world was played from its beginning. */
  executions: 0,
  states: 0,
  /** How many schedules ended in a state in which no other one had ended. */
  schedules: 0,
  /** Steps of the longest schedule. */
  longest: 0,
  /** Of the schedules: how many in which two handlers have succeeded. */
  twice: 0,
  /** Of the schedules: how many in which a handler began after another delivery's late success. */
  overtaken: 0,
  /** Whether every schedule was followed. */
  isExhausted: false,
  tookMs: 0,
  /** The promise that a schedule breaks, and the schedule. */
  violation: undefined as string | undefined,
};

type Findings = typeof nothing;

interface SearchOptions {
  /** Default none. */
  readonly fault?: Fault;
  /** Default `Infinity`. */
  readonly limitMs?: number;
  /** Finds the shortest schedule that breaks a promise. Depth first, the default, follows all of them in less time. */
  readonly isBreadthFirst?: boolean;
}

/** The choices that were taken, by their places among the choices that there were. Schedules share their beginnings. */
interface Path {
  readonly before: Path | undefined;
  readonly choice: number;
}

/**
 * Follows every schedule of a situation until one breaks a promise. Each is played from its beginning, because real
 * receivers and stores cannot be copied. Schedules that meet in one state are followed from there once.
 */
export async function explore(situation: Situation, options: SearchOptions = {}): Promise<Findings> {
  const search = new Search(situation, options.fault ?? {}, options.isBreadthFirst ?? false);
  const onRejection = (reason: unknown): void => {
    search.noteRejection(reason);
  };
  process.on('unhandledRejection', onRejection);
  try {
    return await search.run(options.limitMs ?? Infinity);
  } finally {
    process.off('unhandledRejection', onRejection);
  }
}

/**
 * Plays one schedule, given by the beginnings of its steps. A step is taken as soon as it can be, and before that what
 * can happen first, except that a delivery arrives. Resolves with the promise that it breaks, and all steps.
 */
export async function play(
  situation: Situation,
  steps: readonly string[],
  fault: Fault = {},
): Promise<Findings['violation']> {
  const world = new World(situation, fault, new Map());
  const story: string[] = [];
  await world.live(async () => {
    const left = [...steps];
    for (let choices = world.choices(); choices.length > 0 && !world.watch.isBroken; choices = world.choices()) {
      const next = choices.find((choice) => choice.describe().startsWith(left[0] ?? '\0'));
      if (next !== undefined) left.shift();
      const choice = next ?? choices.find((each) => !each.describe().includes(' arrives ')) ?? choices[0];
      if (choice !== undefined) story.push((await world.take(choice))());
    }
    if (!world.watch.isBroken) story.push(...(await world.finish()));
  });
  const { broken } = world.watch;
  return broken && toText(broken, story);
}

function toText(broken: string, story: readonly string[]): string {
  return [broken, '', ...story].join('\n');
}

class Search {
  readonly #situation: Situation;
  readonly #fault: Fault;
  readonly #isBreadthFirst: boolean;
  readonly #histories: Histories = new Map();
  readonly #seen = new Set<string>();
  readonly #frontier: (Path | undefined)[] = [undefined];
  readonly #findings: Findings = { ...nothing };
  #rejection: string | undefined;

  constructor(situation: Situation, fault: Fault, isBreadthFirst: boolean) {
    this.#situation = situation;
    this.#fault = fault;
    this.#isBreadthFirst = isBreadthFirst;
  }

  noteRejection(reason: unknown): void {
    this.#rejection ??= reason instanceof Error ? String(reason.stack) : String(reason);
  }

  async run(limitMs: number): Promise<Findings> {
    const findings = this.#findings;
    const startedAt = performance.now();
    for (let next = 0; next < this.#frontier.length && findings.violation === undefined;) {
      if (performance.now() - startedAt > limitMs) break;
      const path = this.#isBreadthFirst ? this.#frontier[next++] : this.#frontier.pop();
      findings.executions += 1;
      const world = this.#makeWorld();
      const end = await world.live(() => this.#follow(world, path));
      await new Promise(setImmediate); // Node reports unhandled rejections now.
      if (this.#rejection !== undefined) world.watch.break('noRejection', this.#rejection);
      const { broken } = world.watch;
      if (broken !== undefined) findings.violation = toText(broken, await this.#tell(end));
      findings.isExhausted = next === this.#frontier.length;
    }
    findings.states = this.#seen.size;
    findings.tookMs = Math.round(performance.now() - startedAt);
    return findings;
  }

  #makeWorld(): World {
    return new World(this.#situation, this.#fault, this.#histories);
  }

  /** Plays a schedule up to the end of `path`, and on to a state that is known. Returns how far it came. */
  async #follow(world: World, path: Path | undefined): Promise<Path | undefined> {
    for (const choice of toList(path)) await takeChoice(world, choice);
    let end = path;
    while (world.watch.broken === undefined && this.#isNew(world)) {
      const [first, ...others] = world.choices();
      if (first === undefined) {
        await world.finish();
        this.#count(world, end);
        break;
      }
      for (let choice = others.length; choice > 0; choice -= 1) this.#frontier.push({ before: end, choice });
      end = { before: end, choice: 0 };
      if (this.#isBreadthFirst) {
        this.#frontier.push(end);
        break;
      }
      await world.take(first);
    }
    return end;
  }

  #isNew(world: World): boolean {
    const state = createHash('md5').update(world.fingerprint()).digest('base64');
    return this.#seen.size < this.#seen.add(state).size;
  }

  #count({ watch }: World, path: Path | undefined): void {
    const findings = this.#findings;
    findings.schedules += 1;
    findings.longest = Math.max(findings.longest, toList(path).length);
    if (watch.successes.length > 1) findings.twice += 1;
    if (watch.overtakenStarts.length > 0) findings.overtaken += 1;
  }

  /** Plays a schedule once more, and describes it. */
  async #tell(path: Path | undefined): Promise<string[]> {
    const world = this.#makeWorld();
    return world.live(async () => {
      const lines: string[] = [];
      for (const choice of toList(path)) lines.push((await takeChoice(world, choice))());
      if (world.watch.broken === undefined) lines.push(...(await world.finish()));
      return lines;
    });
  }
}

async function takeChoice(world: World, index: number): Promise<() => string> {
  const choice = world.choices()[index];
  if (choice === undefined) throw new Error('A schedule is not repeatable.');
  return world.take(choice);
}

function toList(path: Path | undefined): number[] {
  const list: number[] = [];
  for (let step = path; step !== undefined; step = step.before) list.push(step.choice);
  return list.reverse();
}
