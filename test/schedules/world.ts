import { transferSucceeded } from 'transfer-callbacks/testing';
import { noBudget, type Budget, type Choice } from './choice.js';
import { Deliveries, hasStarted, type PlannedDelivery } from './deliveries.js';
import { ModelRedis } from './model-redis.js';
import type { Command } from './network.js';
import { Process, type Fault, type Handler, type Histories, type Surroundings } from './process.js';
import { claimToken, times, Watch } from './promises.js';
import type { Situation } from './situations.js';
import { VirtualClock } from './virtual-clock.js';

interface RunningHandler {
  readonly delivery: PlannedDelivery;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

const callback = transferSucceeded({ id: 'x', externalId: 'e' });

/** Some processes, one Redis and one callback, where nothing happens but what is chosen. */
export class World implements Surroundings {
  readonly clock = new VirtualClock();
  readonly watch: Watch;
  readonly fault: Fault;
  readonly histories: Histories;
  readonly inFlightWaitMs: number;
  readonly anyOrder: boolean;
  readonly #holdsUpUnreadClaims: boolean;
  readonly #redis = new ModelRedis();
  readonly #processes = new Map<string, Process>();
  readonly #deliveries = new Deliveries();
  readonly #running = new Map<string, RunningHandler>();
  #budget: Budget;
  /** What has followed from the last choice, for people. */
  #remarks: string[] = [];

  constructor(situation: Situation, fault: Fault, histories: Histories) {
    const { deliveries, inFlightWaitMs = 50, anyOrder = false, holdsUpUnreadClaims = false, budget } = situation;
    this.fault = fault;
    this.histories = histories;
    this.inFlightWaitMs = inFlightWaitMs;
    this.anyOrder = anyOrder;
    this.#holdsUpUnreadClaims = holdsUpUnreadClaims;
    this.#budget = { ...noBudget, ...budget };
    this.watch = new Watch(inFlightWaitMs);
    for (const { process, notBeforeMs, isRetry } of deliveries) {
      this.#deliveries.plan(this.#process(process), notBeforeMs, isRetry);
    }
  }

  /** Runs `main` where timers and the time are this world's. */
  live<T>(main: () => Promise<T>): Promise<T> {
    return this.clock.replaceGlobals(main);
  }

  /** All that decides what can still happen, and how it is judged. */
  fingerprint(): string {
    const { record } = this.#redis;
    const processes = [...this.#processes.values()].map((process) => process.fingerprint());
    const budget = Object.values(this.#budget).join();
    return [this.clock.now, record?.value, record?.expiresAt, ...processes, budget, this.watch.fingerprint()].join('|');
  }

  /** What can happen next. The first choice leads on without any mishap. */
  choices(): Choice[] {
    const processes = [...this.#processes.values()];
    const choices = [
      ...this.#deliveries.thatCanArrive(this.clock.now).map((delivery) => this.#arrive(delivery)),
      ...processes.flatMap(({ connection, isAwake }) => connection.choices(this.#budget, isAwake)),
      ...[...this.#running.values()].flatMap((handler) => this.#endHandler(handler)),
      ...processes.flatMap((process) => this.#mishaps(process)),
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
   * All is quiet. One more attempt in each process, a lease later and on a healthy network, must be acknowledged. Where
   * none is left a new process receives it. Resolves with what has happened.
   */
  async finish(): Promise<string[]> {
    const story: (() => string)[] = [];
    this.watch.allIsQuiet(this.#deliveries.all);
    this.#budget = noBudget;
    const alive = [...this.#processes.values()].filter(({ state }) => state !== 'dead');
    for (const process of alive.length > 0 ? alive : [this.#process('C')]) {
      this.clock.now += times.leaseMs;
      this.#lapse();
      const last = this.#deliveries.plan(process);
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
    const before = this.#redis.record;
    const reply = this.#redis.run(command.words, this.clock.now);
    this.watch.commandRan(command, before, this.#redis.record, [...this.#running.keys()]);
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

  readonly handle: Handler = (_callback, { source, signal }) =>
    new Promise((resolve, reject) => {
      const delivery = this.#deliveries.find(source);
      if (delivery === undefined) throw new Error(`A handler runs for ${source}, which is no delivery.`);
      delivery.handlerBeganAt = this.clock.now;
      this.watch.handlerBegins(delivery, this.#redis.record);
      this.#remarks.push(`${source}'s handler begins`);
      this.#running.set(source, { delivery, resolve, reject });
      signal?.addEventListener('abort', () => {
        const { code } = signal.reason as { code?: string };
        if (code === 'LEASE_LOST') this.watch.leaseIsGivenUp(delivery, this.#redis.record);
        this.#remarks.push(`the signal of ${source}'s handler aborts: ${String(code)}`);
      });
    });

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
    const { name, process } = delivery;
    try {
      const { outcome } = await process.receive(callback, { source: name });
      delivery.outcome = outcome;
      this.#remarks.push(`${name} ends as ${outcome}`);
      this.watch.deliveryEnds(delivery, this.clock.now, !process.wasHeldUp);
    } catch (error) {
      this.watch.break('noRejection', `receive rejects for ${name}: ${String(error)}`);
    }
  }

  #endHandler({ delivery, resolve, reject }: RunningHandler): Choice[] {
    const { name, process } = delivery;
    if (!process.isAwake) return [];
    const end = (how: string, settle: () => void) => ({
      take: () => {
        this.#running.delete(name);
        process.see(`${how} ${name}`);
        if (how === 'succeeds') this.watch.handlerSucceeds(delivery);
        else this.#budget.failures -= 1;
        return this.clock.run(process, settle);
      },
      describe: () => `${name}'s handler ${how}`,
    });
    const failing = () => {
      reject(new Error('The handler has failed.'));
    };
    return [end('succeeds', resolve), ...(this.#budget.failures > 0 ? [end('fails', failing)] : [])];
  }

  #mishaps(process: Process): Choice[] {
    const { state, connection } = process;
    if (state === 'held up') return [this.#wake(process)];
    const isBusy =
      !connection.isIdle || [...this.#running.values()].some(({ delivery }) => delivery.process === process);
    if (state === 'dead' || !isBusy) return [];
    const choices: Choice[] = [];
    if (this.#budget.crashes > 0) choices.push(this.#kill(process));
    const isClaimUnread = connection.unread?.words.some((word) => word.toUpperCase() === 'NX') === true;
    if (this.#budget.holdUps > 0 && (isClaimUnread || !this.#holdsUpUnreadClaims)) choices.push(this.#holdUp(process));
    return choices;
  }

  #kill(process: Process): Choice {
    return {
      take: () => {
        this.#budget.crashes -= 1;
        process.state = 'dead';
        process.connection.close();
        const dying = this.#deliveries.all.filter((delivery) => delivery.process === process && hasStarted(delivery));
        for (const delivery of dying) {
          delivery.outcome ??= 'crashed';
          this.#running.delete(delivery.name);
        }
        this.watch.processDies(dying.map(({ name }) => name));
      },
      describe: () => `process ${process.name} dies`,
    };
  }

  #holdUp(process: Process): Choice {
    return {
      take: () => {
        this.#budget.holdUps -= 1;
        process.state = 'held up';
        process.wasHeldUp = true;
      },
      describe: () => `process ${process.name} is held up`,
    };
  }

  #wake(process: Process): Choice {
    return {
      take: () => {
        process.state = 'awake';
        process.see('wakes');
      },
      describe: () => `process ${process.name} goes on`,
    };
  }

  /** The next time at which something happens by itself: a timer, a lease that lapses, a delivery that arrives. */
  #nextDueAt(): number {
    const { record } = this.#redis;
    const lapsesAt = claimToken(record) === undefined ? Infinity : (record?.expiresAt ?? Infinity);
    return Math.min(this.clock.nextDueAt(), lapsesAt, this.#deliveries.nextArrivalAt(this.clock.now));
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

  #lapse(): void {
    const record = this.#redis.lapse(this.clock.now);
    if (record === undefined) return;
    const token = claimToken(record);
    if (token === undefined) {
      this.watch.break('absorbing', 'The settled record has lapsed before its time.');
      return;
    }
    const process = this.#deliveries.find(token)?.process;
    const isExcused = process === undefined || !process.isAwake || process.connection.carries(token);
    this.#remarks.push(`the claim of ${token} lapses`);
    this.watch.claimLapses(token, isExcused);
  }
}
