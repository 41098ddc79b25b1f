import { refusal } from './lend.js';

type Send = (sql: string) => PromiseLike<unknown>;

interface Operation {
  readonly args: unknown;
  readonly query: (args: unknown) => Promise<unknown>;
}

/**
 * Stands before one transaction of Prisma. What a handler has left running could fail between the record and Prisma's
 * COMMIT, which would then roll back without an error. So the last statement of the store waits for it, and nothing follows.
 */
export class PrismaGate {
  readonly #running = new Set<Promise<unknown>>();
  #sent = 0;
  #own: string | undefined;

  /** Sends a statement of the store: the first or the last one of the transaction. */
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
