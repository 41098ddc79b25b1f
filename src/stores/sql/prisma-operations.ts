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

  /** Sends a statement of the store. */
  send(sql: string, tx: { readonly $queryRawUnsafe: Send }): PromiseLike<unknown> {
    this.#own = sql;
    return tx.$queryRawUnsafe(sql);
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
        const isOwn = Array.isArray(args) && args[0] === this.#own;
        if (isOwn) return query(args);
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
}
