import { TransferCallbackError } from '../../lib/errors.js';
import { lateRefusal } from './lend.js';

type Send = (sql: string) => PromiseLike<unknown>;

interface Operation {
  readonly args: unknown;
  readonly query: (args: unknown) => Promise<unknown>;
}

/**
 * Tracks the operations of one transaction of Prisma. One that a handler has left running could fail between the record
 * and Prisma's COMMIT, which would then roll back without an error. So those that run are waited for, and later ones
 * are refused.
 */
export class PrismaOperations {
  readonly #running = new Set<Promise<unknown>>();
  #hasEnded = false;
  /** The statement of the store that is being sent. */
  #own: string | undefined;
  /** Whether the extension has seen the first statement of the store. */
  #hasSeenFirst: boolean | undefined;

  /** Sends a statement of the store. Rejects after the first one if operations pass by the extension. */
  async send(sql: string, tx: { readonly $queryRawUnsafe: Send }): Promise<unknown> {
    const isFirst = this.#hasSeenFirst === undefined;
    this.#hasSeenFirst ??= false;
    this.#own = sql;
    try {
      const reply = await tx.$queryRawUnsafe(sql);
      // A handler's operation that passes by the extension could also fail between the record and the COMMIT.
      if (isFirst && !this.#hasSeenFirst) throw new TransferCallbackError('STORE_REPLY_UNEXPECTED', unseen);
      return reply;
    } finally {
      if (this.#own === sql) this.#own = undefined;
    }
  }

  /** Refuses all further operations of the handler. */
  end(): void {
    this.#hasEnded = true;
  }

  /** Resolves when the operations that run are over. Returns undefined if there are none. */
  idle(): Promise<unknown> | undefined {
    return this.#running.size === 0 ? undefined : Promise.allSettled(this.#running);
  }

  /** For `$extends` of the client. */
  readonly extension = {
    query: {
      $allOperations: ({ args, query }: Operation): Promise<unknown> => {
        if (this.#isOwn(args)) {
          this.#hasSeenFirst = true;
          return query(args);
        }
        if (this.#hasEnded) return Promise.reject(lateRefusal());
        const running = query(args);
        this.#running.add(running);
        const forget = (): void => {
          this.#running.delete(running);
        };
        running.then(forget, forget);
        return running;
      },
    },
  };

  /** Whether these are the arguments of the store's statement, to which an extension may have added a comment. */
  #isOwn(args: unknown): boolean {
    const sql: unknown = Array.isArray(args) ? args[0] : undefined;
    return this.#own !== undefined && typeof sql === 'string' && sql.includes(this.#own);
  }
}

const unseen =
  'An extension of the Prisma client replaces `$transaction`, or rewrites raw queries. Give the store the client without this extension.';
