import { refusal } from './lend.js';

type Send = (sql: string) => PromiseLike<unknown>;

interface Operation {
  readonly args: unknown;
  readonly query: (args: unknown) => Promise<unknown>;
}

/**
 * Tracks the operations of one transaction of Prisma. One that a handler has left running could fail between the record and
 * Prisma's COMMIT, which would then roll back without an error. So the store's last statement waits for those that run, and
 * later ones are refused.
 */
export class PrismaOperations {
  readonly #running = new Set<Promise<unknown>>();
  #sent = 0;
  #own: string | undefined;

  /** Sends a statement of the store: first that at the beginning of the transaction, then that at its end. */
  async send(sql: string, tx: { readonly $queryRawUnsafe: Send }): Promise<unknown> {
    this.#own = sql;
    this.#sent += 1;
    await Promise.allSettled(this.#running);
    return tx.$queryRawUnsafe(sql);
  }

  /** For `$extends` of the client. */
  readonly extension = {
    query: {
      $allOperations: ({ args, query }: Operation): Promise<unknown> => {
        const isOwn = Array.isArray(args) && args[0] === this.#own;
        if (this.#sent > 1 && !isOwn) return Promise.reject(refusal('the handler has finished'));
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
