import { TransferCallbackError } from '../core/errors.js';
import { setDeadline } from './postgres-deadline.js';

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
export class Checkout {
  readonly client: PgClient;
  /** Called if the connection breaks while the client is out of the pool. */
  onBroken: () => void = () => undefined;
  #state: 'out' | 'broken' | 'back' = 'out';

  constructor(client: PgClient) {
    this.client = client;
    client.on('error', this.#onError);
  }

  /** Returns the client to the pool, or destroys it if its connection has broken. */
  giveBack(): void {
    this.#leave(this.#state === 'broken');
  }

  /** Ends the connection. Postgres rolls back the transaction that was open on it. */
  destroy(): void {
    this.#leave(true);
  }

  #leave(destroyed: boolean): void {
    if (this.#state === 'back') return;
    this.#state = 'back';
    try {
      this.client.release(destroyed);
    } catch {
      // Other code has released the client. The transaction has ended by now, and its outcome must not change.
    }
    // A destroyed client may still emit `error`: keep the listener.
    if (!destroyed) this.client.off('error', this.#onError);
  }

  readonly #onError = (): void => {
    if (this.#state !== 'out') return;
    this.#state = 'broken';
    this.onBroken();
  };
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
      reject(
        new TransferCallbackError('STORE_TIMEOUT', `The pool had no client within ${Math.round(waitMs ?? 0)} ms.`),
      );
    });
    const take = (client: PgClient): void => {
      cancel();
      const checkout = new Checkout(client);
      if (waiting) resolve(checkout);
      // The caller has stopped waiting. Not synchronously: the pool would call the next waiting caller within this call,
      // and some thousand of them would overflow the stack.
      else {
        queueMicrotask(() => {
          checkout.giveBack();
        });
      }
    };
    const fail = (error: unknown): void => {
      cancel();
      reject(error instanceof Error ? error : new Error('The pool returned no client.', { cause: error }));
    };
    // By callback, which pg calls synchronously: a connection that is ended right after it was opened emits `error`
    // before a promise could resolve, and without a listener that would end the process.
    const promised = (pool.connect as ConnectWithCallback).call(pool, (error, client) => {
      if (client === undefined) fail(error);
      else take(client);
    });
    // A pool that is not pg's own may ignore the callback and return a promise.
    promised?.then(take, fail);
  });
}

/**
 * Sends one message, of one statement or several, on a client of the pool. Rejects with STORE_TIMEOUT if the pool has no
 * client within `timeoutMs`, and destroys the client if the reply takes as long.
 */
export async function runOnce(pool: PgPool, sql: string, timeoutMs?: number): Promise<unknown> {
  const checkout = await checkOut(pool, timeoutMs);
  const cancel = setDeadline(timeoutMs, () => {
    checkout.destroy();
  });
  try {
    const result = await checkout.client.query(sql);
    checkout.giveBack();
    return result;
  } catch (error) {
    checkout.destroy();
    throw error;
  } finally {
    cancel();
  }
}

/** Listens for errors of idle connections if the app does not: without a listener they would end the process. */
export function surviveRestarts(pool: PgPool): void {
  if (pool.listenerCount?.('error') === 0) pool.on?.('error', () => undefined);
}
