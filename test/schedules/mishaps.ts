import type { Budget, Choice } from './choice.js';
import { hasStarted, type Deliveries } from './deliveries.js';
import type { Handlers } from './handlers.js';
import type { Process } from './process.js';
import { isClaim, type Watch } from './promises.js';
import type { Situation } from './situations.js';

/** When processes are held up. */
type HoldUps = Pick<Situation, 'holdsUpUnreadClaims' | 'holdsUpHandlersOf'>;

/** What can happen to a process: it dies, or it is stopped for a while. */
export class Mishaps {
  readonly #deliveries: Deliveries;
  readonly #handlers: Handlers;
  readonly #watch: Watch;
  readonly #situation: HoldUps;

  constructor(deliveries: Deliveries, handlers: Handlers, watch: Watch, situation: HoldUps) {
    this.#deliveries = deliveries;
    this.#handlers = handlers;
    this.#watch = watch;
    this.#situation = situation;
  }

  /** What can happen to this process now. */
  choices(process: Process, budget: Budget): Choice[] {
    const { state, connection } = process;
    if (state === 'held up') return [this.#wake(process)];
    const isBusy = !connection.isIdle || this.#handlers.runsIn(process);
    if (state === 'dead' || !isBusy) return [];
    const choices: Choice[] = [];
    if (budget.crashes > 0) choices.push(this.#kill(process, budget));
    const isClaimUnread = connection.unread !== undefined && isClaim(connection.unread.words);
    const { holdsUpUnreadClaims = false, holdsUpHandlersOf } = this.#situation;
    const isMeant = holdsUpHandlersOf === undefined || (holdsUpHandlersOf === process.name && connection.isIdle);
    const canBeHeldUp = budget.holdUps > 0 && (isClaimUnread || !holdsUpUnreadClaims) && isMeant;
    if (canBeHeldUp) choices.push(this.#holdUp(process, budget));
    return choices;
  }

  #kill(process: Process, budget: Budget): Choice {
    return {
      take: () => {
        budget.crashes -= 1;
        process.state = 'dead';
        process.connection.close();
        const dying = this.#deliveries.all.filter((delivery) => delivery.process === process && hasStarted(delivery));
        for (const delivery of dying) {
          delivery.outcome ??= 'crashed';
          this.#handlers.drop(delivery.name);
        }
        this.#watch.processDies(dying.map(({ name }) => name));
      },
      describe: () => `process ${process.name} dies`,
    };
  }

  #holdUp(process: Process, budget: Budget): Choice {
    return {
      take: () => {
        budget.holdUps -= 1;
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
}
