import { refusal } from './lend.js';

type Send = (sql: string) => PromiseLike<unknown>;

interface Operation {
  readonly args: unknown;
  readonly query: (args: unknown) => Promise<unknown>;
}

/**
 * Tracks the operations of one transaction of Prisma. One that a handler has left running could fail between the record and
 * Prisma's COMMIT, which would then roll back without an error. So those that run are waited for, and later ones are refused.
 */
export class PrismaOperations {
  readonly #running = new Set<Promise<unknown>>();
  readonly #endsTransaction: ((error: unknown) => boolean) | undefined;
  /** Why operations are refused, if they are. */
  #refused: string | undefined;
  /** The statement of the store that is being sent. */
  #own: string | undefined;

  constructor(endsTransaction?: (error: unknown) => boolean) {
    this.#endsTransaction = endsTransaction;
  }

  /** Sends a statement of the store. */
  send(sql: string, tx: { readonly $queryRawUnsafe: Send }): PromiseLike<unknown> {
    this.#own = sql;
    return tx.$queryRawUnsafe(sql);
  }

  /** Refuses all further operations of the handler. */
  end(): void {
    this.#refused ??= 'the handler has finished';
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
        if (this.#refused !== undefined) return Promise.reject(refusal(this.#refused));
        const running = query(args);
        this.#running.add(running);
        running.then(
          () => this.#running.delete(running),
          (error: unknown) => {
            this.#running.delete(running);
            if (this.#endsTransaction?.(error)) this.#refused ??= 'a deadlock has ended the transaction';
          },
        );
        return running;
      },
    },
  };
}
