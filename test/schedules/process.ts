import {
  redisStore,
  transferCallbackReceiver,
  type CallbackStore,
  type TransferCallbackReceiver,
} from 'transfer-callbacks';
import { modelSqlStore, type SqlFault } from './model-sql.js';
import { Connection, type Ends } from './network.js';
import { reversingService } from '../support/helpers/reversing.js';
import { times } from './promises.js';
import type { Situation } from './situations.js';
import type { VirtualClock, TimerOwner } from './virtual-clock.js';

/** A fault that is built in, to see it found. */
export interface Fault {
  readonly client?: (client: Connection['client']) => Connection['client'];
  readonly store?: (store: CallbackStore) => CallbackStore;
  readonly receive?: (receive: Receive, handler: Handler) => Receive;
  readonly sql?: SqlFault;
}

/** Begins every key of the store. */
export const keyPrefix = 'transfer-callbacks:';

export type Receive = TransferCallbackReceiver['receive'];
export type Handler = (callback: unknown, context: { source: string; signal?: AbortSignal }) => Promise<void>;

/** Numbers what a process has seen: the same history has the same number in every schedule. */
export type Histories = Map<string, number>;

/** What a process gets from the world around it. */
export interface Surroundings extends Ends {
  readonly clock: VirtualClock;
  readonly histories: Histories;
  readonly situation: Situation & { readonly inFlightWaitMs: number };
  readonly fault: Fault;
  /** Whether the receiver takes reversals. */
  readonly takesReversals: boolean;
  handle: Handler;
  /** The receiver logs that a callback may have been handled twice. */
  overlapIsReported(): void;
}

/** A process of the merchant's app: a connection to Redis, and a receiver with a store on it. */
export class Process implements TimerOwner {
  readonly name: string;
  readonly connection: Connection;
  readonly receive: Receive;
  state: 'awake' | 'held up' | 'dead' = 'awake';
  wasHeldUp = false;
  readonly #clock: VirtualClock;
  readonly #histories: Histories;
  #history = 0;

  constructor(name: string, surroundings: Surroundings) {
    const { clock, histories, situation, fault, takesReversals, handle } = surroundings;
    this.name = name;
    this.#clock = clock;
    this.#histories = histories;
    this.connection = new Connection(name, surroundings, situation.anyOrder === true);
    const { client } = this.connection;
    const store = situation.isTransactional
      ? modelSqlStore(client, keyPrefix, fault.sql)
      : redisStore(fault.client?.(client) ?? client);
    const receiver = transferCallbackReceiver({
      ...times,
      inFlightWaitMs: situation.inFlightWaitMs,
      store: fault.store?.(store) ?? store,
      onSuccess: handle,
      onFailed: handle,
      // Without a reversal the receiver is that of the documented service.
      ...(takesReversals && ({ service: reversingService, onReversed: handle } as object)),
      logger: {
        warn: () => undefined,
        error: (_details, message) => {
          if (message.includes('handled twice')) surroundings.overlapIsReported();
        },
      },
    });
    const receive: Receive = (...given) => receiver.receive(...given);
    this.receive = fault.receive?.(receive, handle) ?? receive;
  }

  get isAwake(): boolean {
    return this.state === 'awake';
  }

  see(event: string): void {
    const history = `${this.#history} ${event} ${this.#clock.now}`;
    this.#history = this.#histories.get(history) ?? this.#histories.size + 1;
    this.#histories.set(history, this.#history);
  }

  /** Nothing but the time and what this process has seen decides what its code does next. */
  fingerprint(): string {
    return `${this.state} ${this.#history} ${this.connection.fingerprint()}`;
  }
}
