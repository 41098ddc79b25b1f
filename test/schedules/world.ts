import { transferSucceeded } from 'transfer-callbacks/testing';
import { announced, type Status } from '../support/helpers/reversing.js';
import { noBudget, type Budget, type Choice } from './choice.js';
import { Deliveries, type PlannedDelivery } from './deliveries.js';
import { Handlers } from './handlers.js';
import { Mishaps } from './mishaps.js';
import { isReversalKey, ModelRedis } from './model-redis.js';
import { ModelSql } from './model-sql.js';
import type { Command } from './network.js';
import { Process, type Fault, type Handler, type Histories, type Surroundings } from './process.js';
import { claimToken, times, Watch } from './promises.js';
import type { Situation } from './situations.js';
import { VirtualClock } from './virtual-clock.js';

const documented = transferSucceeded({ id: 'x', externalId: 'e' });

/** Some processes, one database and one transfer, where nothing happens but what is chosen. */
export class World implements Surroundings {
  readonly clock = new VirtualClock();
  readonly watch: Watch;
  readonly situation: Surroundings['situation'];
  readonly fault: Fault;
  readonly histories: Histories;
  readonly takesReversals: boolean;
  readonly handle: Handler;
  readonly #database: ModelRedis | ModelSql;
  readonly #processes = new Map<string, Process>();
  readonly #deliveries = new Deliveries();
  readonly #handlers: Handlers;
  readonly #mishaps: Mishaps;
  #budget: Budget;
  /** What has followed from the last choice, for people. */
  #remarks: string[] = [];

  constructor(situation: Situation, fault: Fault, histories: Histories) {
    const { deliveries, inFlightWaitMs = 50, isTransactional, budget } = situation;
    this.situation = { ...situation, inFlightWaitMs };
    this.fault = fault;
    this.histories = histories;
    this.#database = isTransactional ? new ModelSql() : new ModelRedis();
    this.takesReversals = deliveries.some(({ status }) => status === 'REVERSED');
    this.#budget = { ...noBudget, ...budget };
    this.watch = new Watch(inFlightWaitMs);
    this.#handlers = new Handlers({
      clock: this.clock,
      watch: this.watch,
      database: this.#database,
      deliveries: this.#deliveries,
      remark: (text) => void this.#remarks.push(text),
    });
    this.handle = this.#handlers.handle;
    this.#mishaps = new Mishaps(this.#deliveries, this.#handlers, this.watch, situation);
    for (const { process, status = 'SUCCESS', notBeforeMs, isRetry } of deliveries) {
      this.#deliveries.plan(this.#process(process), status, notBeforeMs, isRetry);
    }
  }

  /** Runs `main` where timers and the time are this world's. */
  live<T>(main: () => Promise<T>): Promise<T> {
    return this.clock.replaceGlobals(main);
  }

  /** All that decides what can still happen, and how it is judged. */
  fingerprint(): string {
    const records = [...this.#database.records].map(([key, { value, expiresAt }]) => `${key} ${value} ${expiresAt}`);
    const processes = [...this.#processes.values()].map((process) => process.fingerprint());
    const budget = Object.values(this.#budget).join();
    const all = [...records.sort(), this.#database.fingerprint(), ...processes, budget, this.watch.fingerprint()];
    return [this.clock.now, ...all].join('|');
  }

  /** What can happen next. The first choice leads on without any mishap. */
  choices(): Choice[] {
    const processes = [...this.#processes.values()];
    const choices = [
      ...this.#deliveries.thatCanArrive(this.clock.now).map((delivery) => this.#arrive(delivery)),
      ...processes.flatMap(({ connection, isAwake }) => connection.choices(this.#budget, isAwake)),
      ...this.#handlers.choices(this.#budget),
      ...processes.flatMap((process) => this.#mishaps.choices(process, this.#budget)),
      ...this.#recordEnds(),
    ];
    const dueAt = this.#nextDueAt();
    if (dueAt === Infinity) return choices;
    const isDelay = dueAt > this.clock.now && choices.length > 0;
    if (!isDelay || this.#budget.delays > 0) choices.push(this.#passTime(dueAt, isDelay));
    return choices;
  }

  /** Takes a choice, and describes it with what has followed. */
  async take(choice: Choice): Promise<() => string> {
    const remarks: string[] = [];
    this.#remarks = remarks;
    const { now } = this.clock;
    await choice.take();
    return () => [`${String(now).padStart(5)} ms  ${choice.describe()}`, ...remarks].join('\n            ');
  }

  /**
   * All is quiet. One more attempt in each process, a lease later and on a healthy network, must be acknowledged, and
   * give nothing back again. Where none is left a new process receives it. Resolves with what has happened.
   */
  async finish(): Promise<string[]> {
    const story: (() => string)[] = [];
    this.watch.allIsQuiet(this.#deliveries.all);
    this.#budget = noBudget;
    const alive = [...this.#processes.values()].filter(({ state }) => state !== 'dead');
    const attempts = (alive.length > 0 ? alive : [this.#process('C')]).flatMap((process) =>
      this.#lastAttempts.map((status) => ({ process, status })),
    );
    for (const { process, status } of attempts) {
      this.clock.now += times.leaseMs;
      this.#lapse();
      const last = this.#deliveries.plan(process, status);
      while (last.outcome === undefined && !this.watch.isBroken && story.length < 100) {
        const choice = this.choices()[0];
        if (choice === undefined) break;
        story.push(await this.take(choice));
      }
      this.watch.lastAttemptEnds(last);
      if (this.watch.isBroken) break;
    }
    return story.map((describe) => describe());
  }

  runCommand(command: Command): unknown {
    const { records } = this.#database;
    const before = new Map(records);
    const reply = this.#database.run(command.words, this.clock.now);
    const changed = [...new Set([...before.keys(), ...records.keys()])].filter(
      (key) => before.get(key) !== records.get(key),
    );
    for (const key of changed) {
      this.watch.commandRan(command, key, [before.get(key), records.get(key)], this.#handlers.names);
    }
    return reply;
  }

  async learn(processName: string, command: Command, event: string, settle: () => void): Promise<void> {
    const process = this.#process(processName);
    this.watch.replyRead(command);
    process.see(event);
    await this.clock.run(process, settle);
  }

  lose(command: Command): void {
    this.watch.commandLost(command);
  }

  overlapIsReported(): void {
    this.watch.overlapIsReported();
  }

  /** A reversal may follow whatever was handled, and a failure whatever was given back. */
  get #lastAttempts(): Status[] {
    return this.takesReversals ? ['REVERSED', 'FAILED'] : ['SUCCESS'];
  }

  #process(name: string): Process {
    const process = this.#processes.get(name) ?? new Process(name, this);
    this.#processes.set(name, process);
    return process;
  }

  #arrive(delivery: PlannedDelivery): Choice {
    const { name, process } = delivery;
    return {
      take: async () => {
        delivery.startedAt = this.clock.now;
        process.see(name);
        process.connection.tokens.begin(name);
        await this.clock.run(process, () => void this.#receive(delivery));
      },
      describe: () => `${name} arrives at process ${process.name}`,
    };
  }

  async #receive(delivery: PlannedDelivery): Promise<void> {
    const { name, status, process } = delivery;
    try {
      const callback = this.takesReversals ? announced(status, 'x') : documented;
      const { outcome } = await process.receive(callback, { source: name });
      delivery.outcome = outcome;
      this.#remarks.push(`${name} ends as ${outcome}`);
      this.watch.deliveryEnds(delivery, this.clock.now, !process.wasHeldUp);
    } catch (error) {
      this.watch.break('noRejection', `receive rejects for ${name}: ${String(error)}`);
    }
  }

  /** The next time at which something happens by itself: a timer, a lease that lapses, a delivery that arrives. */
  #nextDueAt(): number {
    const claims = [...this.#database.records.values()].filter((record) => claimToken(record) !== undefined);
    const lapseAt = claims.map(({ expiresAt }) => expiresAt);
    return Math.min(this.clock.nextDueAt(), ...lapseAt, this.#deliveries.nextArrivalAt(this.clock.now));
  }

  #passTime(dueAt: number, isDelay: boolean): Choice {
    // The timers of a process that was held up are overdue.
    const isOverdue = dueAt <= this.clock.now;
    return {
      take: async () => {
        if (isDelay) this.#budget.delays -= 1;
        this.clock.now = Math.max(this.clock.now, dueAt);
        this.#lapse();
        await this.clock.runDueTimers();
      },
      describe: () => (isOverdue ? 'overdue timers run' : `time passes until ${dueAt} ms`),
    };
  }

  /** A handled record expires, or a person forgets it. */
  #recordEnds(): Choice[] {
    if (this.#budget.recordEnds === 0) return [];
    const handled = [...this.#database.records].filter(([, record]) => claimToken(record) === undefined);
    return handled.map(([key]) => ({
      take: () => {
        this.#budget.recordEnds -= 1;
        this.#database.records.delete(key);
        this.watch.recordEnds(isReversalKey(key));
      },
      describe: () => `the record of the ${isReversalKey(key) ? 'reversal' : 'transfer'} expires, or is forgotten`,
    }));
  }

  #lapse(): void {
    for (const token of this.#database.lapse(this.clock.now).map(claimToken)) {
      if (token === undefined) {
        this.watch.break('absorbing', 'The handled record has lapsed before its time.');
        continue;
      }
      const process = this.#deliveries.find(token)?.process;
      const isExcused = process === undefined || !process.isAwake || process.connection.carries(token);
      this.#remarks.push(`the claim of ${token} lapses`);
      this.watch.claimLapses(token, isExcused);
    }
  }
}
