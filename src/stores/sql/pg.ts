import { hasMethods, invalidSecret } from '../../lib/checks.js';
import { TransferCallbackError } from '../../lib/errors.js';
import { graceMs, setBackgroundTimer, setDeadline } from '../../lib/deadline.js';
import type { LendRules } from './lend.js';
import { resolveOptions, type SqlStoreOptions } from './options.js';
import { makeStore, type SqlStore } from './store.js';
import { beginOwn, patienceMs, rollbackMs, type OwnConnection, type Send, type SqlEngine } from './transaction.js';

/** What the store uses of a client of `pg`'s pool. */
interface PgClient {
  query(text: string): Promise<unknown>;
  on(event: 'error', listener: (error: Error) => void): unknown;
  off(event: 'error', listener: (error: Error) => void): unknown;
  release(destroy?: boolean): void;
  /** `I`: no transaction. `pg` has it since 8.18. */
  getTransactionStatus?(): string | null;
}

/** What the store uses of a `pg` pool. */
interface PgPool {
  connect(): Promise<PgClient>;
  on?(event: 'error', listener: (error: Error) => void): unknown;
  listenerCount?(event: 'error'): number;
}

/** The type of a pool's clients. `pg` declares `connect` twice: with a promise, and with a callback. */
type PgClientOf<Pool extends PgPool> = Pool['connect'] extends {
  (): Promise<infer Client extends PgClient>;
  (callback: never): void;
}
  ? Client
  : Awaited<ReturnType<Pool['connect']>>;

type Rows = readonly unknown[];

/** Leaves each value as the text that PostgreSQL sends. */
const unparsed = { getTypeParser: () => (text: string) => text };

const begin = 'BEGIN ISOLATION LEVEL READ COMMITTED;\n';
const commit = ';\nCOMMIT';

/**
 * Keeps records in PostgreSQL, through a pool of `pg` or of Neon. Handlers get a client of the pool as `context.tx`. A
 * callback costs two round trips beside the handler's own. Throws INVALID_ARGUMENT.
 *
 * @example
 * const router = transferCallbackRouter({
 *   store: pgStore(new Pool()),
 *   onSuccess: ({ data }, { tx }) => tx.query('INSERT INTO ledger VALUES ($1, $2)', [data.externalId, 'paid']),
 *   onFailed: ({ data }, { tx }) => tx.query('INSERT INTO ledger VALUES ($1, $2)', [data.externalId, 'failed']),
 * });
 */
export function pgStore<Pool extends PgPool>(pool: Pool, options: SqlStoreOptions = {}): SqlStore<PgClientOf<Pool>> {
  // A client connects only once, and one connection is not enough.
  if (!hasMethods(pool, 'connect') || hasMethods(pool, 'escapeIdentifier')) {
    // The value may be a URL with a password in it.
    throw invalidSecret('pool', 'a pool of pg, and no client', pool, 'pgStore(new Pool({ connectionString }))');
  }
  const settings = resolveOptions('postgres', options);
  // Without a listener, an idle connection that breaks would end the process.
  if (pool.listenerCount?.('error') === 0) pool.on?.('error', () => undefined);
  return makeStore(toEngine(pool), settings) as unknown as SqlStore<PgClientOf<Pool>>;
}

function toEngine(pool: PgPool): SqlEngine<PgClient> {
  return {
    async query(sql) {
      const client = await takeClient(pool, patienceMs, patienceMs);
      try {
        return await client.sendWithin(patienceMs, sql);
      } catch (error) {
        client.destroy();
        throw error;
      } finally {
        client.giveBack();
      }
    },
    async begin(steps, { timeoutMs = patienceMs, queueMs = timeoutMs }) {
      return beginOwn(await takeClient(pool, queueMs, timeoutMs), steps, timeoutMs);
    },
  };
}

/** A client that was taken out of the pool. It goes back once; later calls do nothing. */
class PooledClient implements OwnConnection<PgClient> {
  readonly target: PgClient;
  readonly rules: LendRules = { queries: ['query'], ignored: ['release', 'end'] };
  readonly #timeoutMs: number;
  onEnd: (error: Error) => void = () => undefined;
  #isOut = true;
  #hasBegun = false;

  constructor(client: PgClient, timeoutMs: number) {
    this.target = client;
    this.#timeoutMs = timeoutMs;
    client.on('error', this.#onError);
  }

  /**
   * Sends one or several statements in one message. Resolves with the rows of the first one that returns some. Ends the
   * connection if they take longer than `timeoutMs`.
   */
  async sendWithin(timeoutMs: number, sql: string): Promise<Rows> {
    const cancelDeadline = setDeadline(timeoutMs, this.destroy, graceMs);
    try {
      // With this object the parsers of the app stay out. The types of clients only share a query that is a string.
      const query = { text: sql, types: unparsed } as unknown as string;
      const results = (await this.target.query(query)) as { rows: Rows } | { rows: Rows }[];
      const result = Array.isArray(results) ? results.find(({ rows }) => rows.length > 0) : results;
      return result?.rows ?? [];
    } finally {
      cancelDeadline();
    }
  }

  /** Sends a statement of a transaction, in one message with the BEGIN or COMMIT of its place. */
  readonly send: Send = async (sql, place) => {
    const ends = place === 'look' || place === 'last';
    this.#hasBegun = true;
    const rows = await this.sendWithin(this.#timeoutMs, `${place === 'first' ? begin : ''}${sql}${ends ? commit : ''}`);
    this.#hasBegun = !ends;
    return rows;
  };

  async rollBack(): Promise<void> {
    if (this.#hasBegun && this.#isOut) await this.sendWithin(rollbackMs, 'ROLLBACK').catch(this.destroy);
    this.giveBack();
  }

  giveBack(): void {
    this.#leave(false);
  }

  /** Ends the connection. PostgreSQL rolls back what is open on it. */
  readonly destroy = (): void => {
    this.#leave(true);
  };

  #leave(destroy: boolean): void {
    if (!this.#isOut) return;
    this.#isOut = false;
    try {
      this.target.release(destroy);
    } catch {
      // Other code has released the client. The transaction has ended by now, and its outcome must not change.
    }
    // A destroyed client may still emit `error`: keep the listener.
    if (!destroy) this.target.off('error', this.#onError);
  }

  readonly #onError = (error: Error): void => {
    this.destroy();
    this.onEnd(error);
  };
}

type Connect = (
  callback: (error: Error | undefined, client: PgClient | undefined) => void,
) => Promise<PgClient> | undefined;

/** Takes a client out of the pool. Rejects with STORE_TIMEOUT if the pool has none within `waitMs`. */
function takeClient(pool: PgPool, waitMs: number, timeoutMs: number): Promise<PooledClient> {
  return new Promise((resolve, reject) => {
    let isWaiting = true;
    const timer = setBackgroundTimer(() => {
      isWaiting = false;
      reject(new TransferCallbackError('STORE_TIMEOUT', `The pool had no client within ${Math.round(waitMs)} ms.`));
    }, waitMs);
    const take = (taken: PgClient): void => {
      clearTimeout(timer);
      const client = new PooledClient(taken, timeoutMs);
      if (!isWaiting) {
        // Later, because the pool would call its next caller within this call, and thousands would overflow the stack.
        queueMicrotask(() => {
          client.giveBack();
        });
      } else if ((taken.getTransactionStatus?.() ?? 'I') !== 'I') {
        // What other code has begun on it, and not ended, would be committed with the claim.
        client.destroy();
        reject(new TransferCallbackError('STORE_REPLY_UNEXPECTED', leftOpen));
      } else resolve(client);
    };
    const fail = (error: unknown): void => {
      clearTimeout(timer);
      reject(error instanceof Error ? error : new Error('The pool returned no client.', { cause: error }));
    };
    // By callback, which pg calls synchronously: a connection that is ended right after it was opened emits `error`
    // before a promise could resolve, and without a listener that would end the process.
    const promised = (pool.connect as Connect).call(pool, (error, client) => {
      if (client === undefined) fail(error);
      else take(client);
    });
    // A pool that is not pg's own may ignore the callback and return a promise.
    promised?.then(take, fail);
  });
}

const leftOpen =
  'A client of the pool was not usable: other code had begun a transaction on it and not ended it. It was rolled back.';
