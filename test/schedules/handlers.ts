import type { Budget, Choice } from './choice.js';
import type { Deliveries, PlannedDelivery } from './deliveries.js';
import type { ModelRedis } from './model-redis.js';
import type { Handler, Process } from './process.js';
import type { Watch } from './promises.js';
import type { VirtualClock } from './virtual-clock.js';

interface RunningHandler {
  readonly delivery: PlannedDelivery;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** What of the world the handlers act on. */
interface Around {
  readonly clock: VirtualClock;
  readonly watch: Watch;
  readonly database: Pick<ModelRedis, 'records'>;
  readonly deliveries: Deliveries;
  /** Tells people what has followed from the last choice. */
  readonly remark: (text: string) => void;
}

/** The handlers that run, which end only as it is chosen. */
export class Handlers {
  readonly #around: Around;
  readonly #running = new Map<string, RunningHandler>();

  constructor(around: Around) {
    this.#around = around;
  }

  /** The names of the deliveries whose handlers run. */
  get names(): string[] {
    return [...this.#running.keys()];
  }

  runsIn(process: Process): boolean {
    return [...this.#running.values()].some(({ delivery }) => delivery.process === process);
  }

  /** Forgets the handler of a delivery whose process has died. */
  drop(name: string): void {
    this.#running.delete(name);
  }

  /** How those that run can end. */
  choices(budget: Budget): Choice[] {
    return [...this.#running.values()].flatMap((handler) => this.#end(handler, budget));
  }

  /** Begins one, for a receiver. */
  readonly handle: Handler = (_callback, { source, signal }) =>
    new Promise((resolve, reject) => {
      const { clock, watch, database, deliveries, remark } = this.#around;
      const delivery = deliveries.find(source);
      if (delivery === undefined) throw new Error(`A handler runs for ${source}, which is no delivery.`);
      delivery.handlerBeganAt = clock.now;
      watch.handlerBegins(delivery, [...database.records.values()]);
      remark(`${source}'s handler begins`);
      this.#running.set(source, { delivery, resolve, reject });
      signal?.addEventListener('abort', () => {
        const { code } = signal.reason as { code?: string };
        if (code === 'LEASE_LOST') watch.leaseIsGivenUp(delivery, [...database.records.values()]);
        remark(`the signal of ${source}'s handler aborts: ${String(code)}`);
      });
    });

  #end({ delivery, resolve, reject }: RunningHandler, budget: Budget): Choice[] {
    const { clock, watch } = this.#around;
    const { name, process } = delivery;
    if (!process.isAwake) return [];
    const end = (how: string, settle: () => void) => ({
      take: () => {
        this.#running.delete(name);
        process.see(`${how} ${name}`);
        if (how === 'succeeds') watch.handlerSucceeds(delivery);
        else budget.failures -= 1;
        return clock.run(process, settle);
      },
      describe: () => `${name}'s handler ${how}`,
    });
    const failing = () => {
      reject(new Error('The handler has failed.'));
    };
    return [end('succeeds', resolve), ...(budget.failures > 0 ? [end('fails', failing)] : [])];
  }
}
