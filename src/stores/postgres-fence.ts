import { TransferCallbackError } from '../core/errors.js';
import { refuse, transactionEnded, translateControl, type Control } from './postgres-control.js';
import type { PgClient } from './postgres-pool.js';

type Callback = (error: unknown, result?: unknown) => void;

/** A cursor or a stream: `pg` runs it by its methods, and it reports its errors itself. */
interface Submittable {
  readonly submit: () => void;
  readonly text?: unknown;
  readonly handleError: (error: unknown) => void;
  readonly on?: (event: 'error', listener: () => void) => unknown;
}

/**
 * `transaction`: the handler has begun a transaction within the store's and not ended it. `closed`: the handler has
 * settled, and no query may run. `abandoned`: so too, and the transaction will not be committed.
 */
type State = 'open' | 'transaction' | 'closed' | 'abandoned';

/**
 * Wraps the client for the handler, as `tx`. The transaction stays the store's to end: a transaction that the handler or
 * its ORM begins becomes a savepoint, `release` does nothing, and all else that would end the store's transaction is
 * refused.
 */
export class Fence {
  readonly tx: PgClient;
  readonly #client: PgClient;
  readonly #run: (...args: unknown[]) => Promise<unknown>;
  readonly #running = new Set<Promise<unknown>>();
  readonly #submitted: Submittable[] = [];
  #state: State = 'open';

  constructor(client: PgClient) {
    this.#client = client;
    this.#run = client.query.bind(client) as (...args: unknown[]) => Promise<unknown>;
    this.tx = this.#wrap(client);
  }

  /** Whether the handler has begun a transaction within the store's and not ended it. */
  get isTransactionOpen(): boolean {
    return this.#state === 'transaction';
  }

  /** Whether the handler has submitted a cursor, a stream or a query object, whose end cannot be seen from here. */
  get hasSubmitted(): boolean {
    return this.#submitted.length > 0;
  }

  /** Refuses every further query: the connection may serve another delivery by then. */
  close(): void {
    if (this.#state !== 'abandoned') this.#state = 'closed';
  }

  /**
   * Closes, because the transaction will not be committed. From now on a query that the handler has left running may
   * fail without ending the process. Resolves when no such query runs any more.
   */
  async abandon(): Promise<void> {
    if (this.#state !== 'abandoned') {
      this.#state = 'abandoned';
      for (const query of this.#submitted) query.on?.('error', () => undefined);
    }
    await Promise.allSettled(this.#running);
  }

  /**
   * Wraps the client. What a handler assigns to the methods of the fence, such as a `query` that logs, stays in this
   * wrapper: on the pooled client it would outlive the handler, and get the store's own COMMIT. All else reaches the
   * client, because `tx.on` keeps its listeners there.
   */
  #wrap(client: PgClient): PgClient {
    const methods: Record<PropertyKey, unknown> = { query: this.#query, end: refuseEnd, release: ignoreRelease };
    const own = { ...methods };
    const holder = (name: PropertyKey): object => (Object.hasOwn(own, name) ? own : client);
    return new Proxy(client, {
      get: (_client, name): unknown => Reflect.get(holder(name), name),
      set: (_client, name, value) => Reflect.set(holder(name), name, value),
      defineProperty: (_client, name, property) => Reflect.defineProperty(holder(name), name, property),
      getOwnPropertyDescriptor: (_client, name) => Reflect.getOwnPropertyDescriptor(holder(name), name),
      deleteProperty: (_client, name) =>
        Object.hasOwn(own, name) ? Reflect.set(own, name, methods[name]) : Reflect.deleteProperty(client, name),
    });
  }

  /** Takes every form of `pg`'s `query`: a text, a config object or a query object, with a callback or without. */
  readonly #query = (...args: unknown[]): unknown => {
    const last = typeof args.at(-1) === 'function' ? (args.pop() as Callback) : undefined;
    const [statement, ...values] = args;
    if (isSubmittable(statement)) return this.#submit(statement, last);
    const { callback } = (statement ?? {}) as { callback?: Callback };
    if (typeof callback !== 'function') return deliver(this.#send(statement, values), last);
    // `pg` would call a callback within the config object, and return no promise.
    return deliver(this.#send({ ...(statement as object), callback: undefined }, values), callback);
  };

  #send(statement: unknown, values: unknown[]): Promise<unknown> {
    try {
      const text = typeof statement === 'string' ? statement : (statement as { text?: unknown }).text;
      const control = this.#translate(text);
      return control === undefined ? this.#track(this.#run(statement, ...values)) : this.#control(control);
    } catch (error) {
      const refusal = error as Error;
      return Promise.reject(refusal);
    }
  }

  #control({ sql, opens }: Control): Promise<unknown> {
    const before = this.#state;
    this.#state = opens ? 'transaction' : 'open';
    return this.#track(this.#run(sql), () => {
      if (!this.#isClosed()) this.#state = before;
    });
  }

  #submit(query: Submittable, callback: Callback | undefined): unknown {
    try {
      if (this.#translate(query.text) !== undefined) throw refuse('transaction control in a query object');
    } catch (error) {
      process.nextTick(() => {
        if (callback === undefined) query.handleError(error);
        else callback(error);
      });
      return query;
    }
    this.#submitted.push(query);
    return this.#run(query, callback);
  }

  /** Returns what runs in place of the statement, if anything does. Throws if the statement must not run. */
  #translate(text: unknown): Control | undefined {
    if (this.#isClosed()) {
      throw new TransferCallbackError('LEASE_LOST', 'The transaction of this handler is over.');
    }
    // Postgres would commit the statement by itself, and the next delivery would repeat it.
    if (hasNoTransaction(this.#client)) throw transactionEnded();
    return translateControl(text, this.isTransactionOpen);
  }

  #isClosed(): boolean {
    return this.#state === 'closed' || this.#state === 'abandoned';
  }

  /**
   * Counts a query as running until it has ended. A handler may leave its promise without a listener, and as an
   * unhandled rejection it would end the process with all its other deliveries. So it is handled here if the delivery
   * fails anyway: it was abandoned, or Postgres has failed the statement and with it the transaction. The failure of a
   * statement that Postgres never saw stays as loud as `pg` makes it, because the transaction may still be committed.
   */
  #track(running: Promise<unknown>, onError?: () => void): Promise<unknown> {
    this.#running.add(running);
    const reply = running.finally(() => this.#running.delete(running));
    running.catch((error: unknown) => {
      onError?.();
      if (this.#state === 'abandoned' || isFromPostgres(error)) reply.catch(() => undefined);
    });
    return reply;
  }
}

function isFromPostgres(error: unknown): boolean {
  return typeof (error as { severity?: unknown } | undefined)?.severity === 'string';
}

function refuseEnd(callback?: Callback): unknown {
  const refused = Promise.reject(refuse('end()'));
  // Apps do not expect end() to fail and may not await it: as an unhandled rejection it would end the process.
  refused.catch(() => undefined);
  return deliver(refused, callback);
}

function ignoreRelease(): void {
  // The store releases the client when the transaction has ended.
}

function isSubmittable(statement: unknown): statement is Submittable {
  return typeof (statement as Partial<Submittable> | undefined)?.submit === 'function';
}

/** Passes the reply on as `pg` does: to the callback if there is one, or as a promise. */
function deliver(reply: Promise<unknown>, callback: Callback | undefined): unknown {
  if (callback === undefined) return reply;
  void reply.then((result) => {
    callback(null, result);
  }, callback);
  return undefined;
}

/** Whether Postgres has reported the end of the transaction. Older drivers lack the method, and older `pg-native` throws. */
function hasNoTransaction(client: PgClient): boolean {
  try {
    return client.getTransactionStatus?.() === 'I';
  } catch {
    return false;
  }
}
