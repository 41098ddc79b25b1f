import { TransferCallbackError } from '../core/errors.js';
import { refuse, transactionEnded, translateControl, type Control } from './postgres-control.js';
import type { PgClient } from './postgres-pool.js';

type Callback = (error: unknown, result?: unknown) => void;

/** A cursor or a stream: `pg` runs it by its methods, and it reports its errors itself. */
interface Submittable {
  readonly submit: () => void;
  readonly text?: unknown;
  readonly handleError: (error: unknown) => void;
}

/** `transaction`: the handler has begun a transaction within the store's and not ended it. `closed`: no query may run. */
type State = 'open' | 'transaction' | 'closed';

/**
 * Wraps the client for the handler, as `tx`. The transaction stays the store's to end: a transaction that the handler or
 * its ORM begins becomes a savepoint, `release` does nothing, and all else that would end the store's transaction is
 * refused.
 */
export class Fence {
  readonly tx: PgClient;
  readonly #client: PgClient;
  readonly #run: (...args: unknown[]) => Promise<unknown>;
  #state: State = 'open';
  #running = 0;

  constructor(client: PgClient) {
    this.#client = client;
    this.#run = client.query.bind(client) as (...args: unknown[]) => Promise<unknown>;
    this.tx = new Proxy(client, { get: (_client, name) => this.#property(name) });
  }

  /** Whether the handler has begun a transaction within the store's and not ended it. */
  get isTransactionOpen(): boolean {
    return this.#state === 'transaction';
  }

  /** Whether a statement of the handler may still be running. */
  get isBusy(): boolean {
    return this.#running > 0;
  }

  /** Refuses every further query: the connection may serve another delivery by then. */
  close(): void {
    this.#state = 'closed';
  }

  #property(name: PropertyKey): unknown {
    if (name === 'query') return this.#query;
    if (name === 'end') return refuseEnd;
    if (name === 'release') return ignoreRelease;
    return Reflect.get(this.#client, name);
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

  async #send(statement: unknown, values: unknown[]): Promise<unknown> {
    const control = this.#translate(typeof statement === 'string' ? statement : (statement as { text?: unknown }).text);
    if (control === undefined) return this.#track(this.#run(statement, ...values));
    const before = this.#state;
    this.#state = control.opens ? 'transaction' : 'open';
    const reply = this.#track(this.#run(control.sql));
    reply.catch(() => {
      if (this.#state !== 'closed') this.#state = before;
    });
    return reply;
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
    // Never counted down: the end of a query object cannot be seen from here.
    this.#running += 1;
    return this.#run(query, callback);
  }

  /** Returns what runs in place of the statement, if anything does. Throws if the statement must not run. */
  #translate(text: unknown): Control | undefined {
    if (this.#state === 'closed') {
      throw new TransferCallbackError('LEASE_LOST', 'The transaction of this handler is over.');
    }
    // Postgres would commit the statement by itself, and the next delivery would repeat it.
    if (hasNoTransaction(this.#client)) throw transactionEnded();
    return translateControl(text, this.isTransactionOpen);
  }

  #track(reply: Promise<unknown>): Promise<unknown> {
    this.#running += 1;
    const finish = (): void => {
      this.#running -= 1;
    };
    reply.then(finish, finish);
    return reply;
  }
}

function refuseEnd(callback?: Callback): unknown {
  return deliver(Promise.reject(refuse('end()')), callback);
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
