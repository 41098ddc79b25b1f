import { TransferCallbackError } from '../core/errors.js';

/** What the store uses of a client of `pg`'s pool. */
export interface PgClient {
  query(text: string): Promise<unknown>;
  on(event: 'error', listener: (error: Error) => void): unknown;
  off(event: 'error', listener: (error: Error) => void): unknown;
  release(destroy?: boolean): void;
  /** `I`: no transaction. `pg` has it since 8.18. */
  getTransactionStatus?(): string | null;
}

/** What the store uses of a `pg` pool. All but `connect` may be missing. */
export interface PgPool {
  connect(): Promise<PgClient>;
  on?(event: 'error', listener: (error: Error) => void): unknown;
  listenerCount?(event: 'error'): number;
  readonly totalCount?: number;
  readonly waitingCount?: number;
}

/** The type of a pool's clients. `pg` declares `connect` twice: with a promise, and with a callback. */
export type PgClientOf<Pool extends PgPool> = Pool['connect'] extends {
  (): Promise<infer Client extends PgClient>;
  (callback: never): void;
}
  ? Client
  : Awaited<ReturnType<Pool['connect']>>;

/** A client that was taken out of the pool. It goes back once; later calls do nothing. */
export interface Checkout {
  readonly client: PgClient;
  /** Returns the client to the pool, or destroys it if its connection has broken. */
  readonly giveBack: () => void;
  /** Ends the connection. Postgres rolls back what was open on it. */
  readonly destroy: () => void;
}

type ConnectWithCallback = (
  callback: (error: Error | undefined, client: PgClient | undefined) => void,
) => Promise<PgClient> | undefined;

/** Takes a client out of the pool. Rejects with STORE_TIMEOUT if the pool has none within `waitMs`. */
export function checkOut(pool: PgPool, waitMs?: number): Promise<Checkout> {
  return new Promise((resolve, reject) => {
    let waiting = true;
    const cancel = setDeadline(waitMs, () => {
      waiting = false;
      reject(new TransferCallbackError('STORE_TIMEOUT', `The pool had no client within ${waitMs} ms.`));
    });
    const take = (client: PgClient): void => {
      cancel();
      const checkout = checkoutOf(client);
      if (waiting) resolve(checkout);
      // The caller has stopped waiting. Not synchronously: the pool would call the next in turn within this call, and
      // some thousand of them would overflow the stack.
      else queueMicrotask(checkout.giveBack);
    };
    const fail = (error: unknown): void => {
      cancel();
      reject(error instanceof Error ? error : new Error('The pool has given no client.', { cause: error }));
    };
    // By callback, which pg calls synchronously: a connection that is ended right after it was opened emits `error`
    // before a promise could resolve, and without a listener that would end the process.
    const promised = (pool.connect as ConnectWithCallback).call(pool, (error, client) => {
      if (client === undefined) fail(error);
      else take(client);
    });
    // A pool that is not pg's own may know promises only.
    promised?.then(take, fail);
  });
}

function checkoutOf(client: PgClient): Checkout {
  let broken = false;
  let isOut = true;
  const onError = (): void => {
    broken = true;
  };
  client.on('error', onError);

  function leave(destroyed: boolean): void {
    if (!isOut) return;
    isOut = false;
    try {
      client.release(destroyed);
    } catch {
      // Somebody else has released it. The transaction has ended by now, and its outcome must not change.
    }
    // A destroyed client may still emit `error`: keep the listener.
    if (!destroyed) client.off('error', onError);
  }

  return {
    client,
    giveBack: () => {
      leave(broken);
    },
    destroy: () => {
      leave(true);
    },
  };
}

/** Runs one statement on a client of its own. */
export async function runOnce(pool: PgPool, sql: string): Promise<unknown> {
  const { client, giveBack, destroy } = await checkOut(pool);
  try {
    const result = await client.query(sql);
    giveBack();
    return result;
  } catch (error) {
    destroy();
    throw error;
  }
}

/** Listens for errors of idle connections if nobody does: without a listener they would end the process. */
export function surviveRestarts(pool: PgPool): void {
  if (pool.listenerCount?.('error') === 0) pool.on?.('error', () => undefined);
}

/**
 * Calls `onDue` after `ms`, and not before the event loop has read its sockets once more: while the loop was busy, the
 * reply may have come. Without `ms` it does nothing. Returns what cancels it. Keeps no process alive.
 */
export function setDeadline(ms: number | undefined, onDue: () => void): () => void {
  if (ms === undefined) return () => undefined;
  let turn: NodeJS.Immediate | undefined;
  const timer = setTimeout(() => {
    turn = setImmediate(onDue);
  }, ms).unref();
  return () => {
    clearTimeout(timer);
    clearImmediate(turn);
  };
}

/** Resolves after the event loop has run its timers and read its sockets. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
