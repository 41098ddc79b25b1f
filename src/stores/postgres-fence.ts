import { TransferCallbackError } from '../core/errors.js';
import { refuse, transactionEnded, translateControl, type Control } from './postgres-control.js';
import type { PgClient } from './postgres-pool.js';

/** The client that the handler gets, and what the store knows of the handler's use of it. */
export interface Fence {
  readonly tx: PgClient;
  /** Refuses every further query: the connection may serve another delivery by then. */
  readonly close: () => void;
  /** Whether the handler has begun a transaction within the store's and not ended it. */
  readonly isTransactionOpen: () => boolean;
  /** Whether a statement of the handler may still be running. */
  readonly isBusy: () => boolean;
}

type Callback = (error: unknown, result?: unknown) => void;

/** A cursor or a stream: `pg` runs it by its methods, and it reports its errors itself. */
interface Submittable {
  readonly submit: () => void;
  readonly text?: unknown;
  readonly handleError: (error: unknown) => void;
}

/**
 * Wraps the client for the handler. The transaction stays the store's to end: a transaction that the handler or its ORM
 * begins becomes a savepoint, `release` does nothing, and all else that would end the store's transaction is refused.
 */
export function fenceClient(client: PgClient): Fence {
  const run = client.query.bind(client) as (...args: unknown[]) => Promise<unknown>;
  let isClosed = false;
  let isOpen = false;
  let running = 0;

  /** Throws if the statement must not run. Returns what runs in its place, if anything does. */
  function check(text: unknown): Control | undefined {
    if (isClosed) throw new TransferCallbackError('LEASE_LOST', 'The transaction of this handler is over.');
    // Postgres would commit the statement by itself, and the next delivery would repeat it.
    if (hasNoTransaction(client)) throw transactionEnded();
    return translateControl(text, isOpen);
  }

  async function send(statement: unknown, values: unknown[]): Promise<unknown> {
    const control = check(typeof statement === 'string' ? statement : (statement as { text?: unknown }).text);
    if (control === undefined) return track(run(statement, ...values));
    isOpen = control.opens;
    const reply = track(run(control.sql));
    reply.catch(() => {
      isOpen = !control.opens;
    });
    return reply;
  }

  function track(reply: Promise<unknown>): Promise<unknown> {
    running += 1;
    const finish = (): void => {
      running -= 1;
    };
    reply.then(finish, finish);
    return reply;
  }

  function submit(query: Submittable, callback: Callback | undefined): unknown {
    try {
      if (check(query.text) !== undefined) throw refuse('transaction control in a query object');
    } catch (error) {
      process.nextTick(() => {
        if (callback === undefined) query.handleError(error);
        else callback(error);
      });
      return query;
    }
    running += 1; // And never less: its end cannot be seen from here.
    return run(query, callback);
  }

  function query(...args: unknown[]): unknown {
    const last = typeof args.at(-1) === 'function' ? (args.pop() as Callback) : undefined;
    const [statement, ...values] = args;
    if (isSubmittable(statement)) return submit(statement, last);
    const { callback } = (statement ?? {}) as { callback?: Callback };
    if (typeof callback !== 'function') return deliver(send(statement, values), last);
    // `pg` calls this one and returns no promise.
    return deliver(send({ ...(statement as object), callback: undefined }, values), callback);
  }

  function end(callback?: Callback): unknown {
    return deliver(Promise.reject(refuse('end()')), callback);
  }

  const own = new Map<PropertyKey, unknown>([
    ['query', query],
    ['end', end],
    ['release', () => undefined],
  ]);
  return {
    tx: new Proxy(client, { get: (target, name): unknown => own.get(name) ?? Reflect.get(target, name) }),
    close: () => {
      isClosed = true;
    },
    isTransactionOpen: () => isOpen,
    isBusy: () => running > 0,
  };
}

function isSubmittable(statement: unknown): statement is Submittable {
  return typeof (statement as Partial<Submittable> | undefined)?.submit === 'function';
}

/** Gives the reply as `pg` does: to the callback if there is one, or as a promise. */
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
