import { pause, waitForSockets } from '../../lib/deadline.js';
import { TransferCallbackError } from '../../lib/errors.js';
import { lateRefusal, lend, Lending, readText, type LendRules, type Loan } from './lend.js';

// What some libraries need in their transactions beside the rules of `lend`.

interface Operation {
  readonly args: unknown;
  readonly query: (args: unknown) => Promise<unknown>;
}

/**
 * Tracks the operations of one transaction of Prisma. One that a handler has left running could fail between the record
 * and Prisma's COMMIT, which would then roll back without an error. So those that run are waited for, and later ones
 * are refused.
 */
export class PrismaOperations extends Lending {
  /** The statement of the store that is being sent. */
  #own: string | undefined;
  /** Whether the extension has seen the first statement of the store. */
  #hasSeenFirst: boolean | undefined;

  /** Sends a statement of the store. Rejects after the first one if operations pass by the extension. */
  async send(sql: string, tx: { readonly $queryRawUnsafe: (sql: string) => PromiseLike<unknown> }): Promise<unknown> {
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

  /** For `$extends` of the client. */
  readonly extension = {
    query: {
      $allOperations: ({ args, query }: Operation): Promise<unknown> => {
        if (this.#isOwn(args)) {
          this.#hasSeenFirst = true;
          return query(args);
        }
        if (this.hasEnded) return Promise.reject(lateRefusal());
        const running = query(args);
        this.track(running);
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

/** Begins the statement by which a library ends a transaction, or a nested one. */
const endText = /^(?:COMMIT|ROLLBACK|RELEASE)\b/;

/** TypeORM's connection of a transaction. It sends all statements by this method, also statements of repositories. */
export interface QueryRunner {
  query(sql: unknown, ...more: readonly unknown[]): Promise<unknown>;
}

/**
 * Knex's transaction. It emits `query` before any statement is sent, also for its nested ones, and a listener may
 * throw.
 */
export interface KnexTransaction {
  on(event: 'query', listener: (query: unknown) => void): unknown;
}

/**
 * Refuses the statements that a failed handler still sends without `tx`: by a repository that it has kept, or by a call
 * of several steps that still runs. Behind the ROLLBACK of the store the database would commit such a statement by
 * itself.
 */
export class LateStatements {
  /** The statement of the store that was sent last, by the transaction. */
  readonly #own = new WeakMap<object, string>();

  /** Lets a statement of the store pass. */
  allow(transaction: object, sql: string): void {
    this.#own.set(transaction, sql);
  }

  /** Makes a failure also end TypeORM's connection, which is another object for each transaction. */
  endTypeorm<Tx>(loan: Loan<Tx>, runner: QueryRunner): Loan<Tx> {
    const query = runner.query.bind(runner);
    return endWith(loan, () => {
      runner.query = async (sql, ...more) => {
        this.#refuse(runner, sql);
        return query(sql, ...more);
      };
    });
  }

  /** Makes a failure also end Knex's transaction. */
  endKnex<Tx>(loan: Loan<Tx>, transaction: KnexTransaction): Loan<Tx> {
    return endWith(loan, () => {
      transaction.on('query', (query) => {
        this.#refuse(transaction, query);
      });
    });
  }

  #refuse(transaction: object, query: unknown): void {
    const text = readText(query);
    if (text !== this.#own.get(transaction) && !endText.test(text)) throw lateRefusal();
  }
}

function endWith<Tx>(loan: Loan<Tx>, close: () => void): Loan<Tx> {
  return {
    ...loan,
    end(hasSucceeded) {
      loan.end(hasSucceeded);
      if (!hasSucceeded) close();
    },
  };
}

type Work<Tx> = (tx: Tx) => Promise<void>;

/**
 * Rules of a transaction of postgres.js, or of Drizzle on it. After a transaction has ended, its connection goes to the
 * next one, which would get what the store sends. `prepare` would end it by PREPARE TRANSACTION.
 */
export const onPostgresJs: LendRules = {
  lazy: ['unsafe', 'execute'],
  controls: ['prepare'],
  get nested() {
    return onPostgresJs;
  },
};

/**
 * Runs a transaction of postgres.js, or of a library on it. When its connection ends, postgres.js rejects and awaits
 * `work` no longer, but still sends COMMIT or ROLLBACK when `work` settles. On a closed connection that ends the
 * process. A connection that is open again has the transaction of another caller. So `work` does not settle then.
 */
export async function runOnPostgresJs<Tx>(
  transaction: (work: Work<Tx>) => PromiseLike<unknown>,
  work: Work<Tx>,
): Promise<void> {
  let isOver = false;
  try {
    await transaction(async (tx) => {
      try {
        await work(tx);
      } catch (error) {
        await waitForSockets();
        throw error;
      } finally {
        if (isOver) await new Promise<never>(() => undefined);
      }
    });
  } finally {
    isOver = true;
  }
}

/** How often the store checks whether a transaction has ended that does not tell it, in milliseconds. */
export const pollMs = 5;

/** Options of the store's queries. Those that an app has set for all of its queries may change rows. */
export const plainRows = { type: 'RAW', raw: true, nest: false, plain: false, fieldMap: undefined, mapToModel: false };

/** A transaction of Sequelize 6. */
export interface SequelizeTransaction {
  /** The nested transactions that were begun in it. */
  readonly savepoints?: readonly SequelizeTransaction[];
  parent?: SequelizeTransaction | null;
  finished?: string | undefined;
}

/** After a deadlock Sequelize would end the transaction of a statement, and return its connection to the pool. */
export function keepOpen(transaction: SequelizeTransaction): object {
  const refuse = { value: () => Promise.reject(new Error('The store ends the transaction.')) };
  const finished = { value: undefined, writable: true };
  return Object.create(transaction, { commit: refuse, rollback: refuse, finished }) as object;
}

/** Sequelize nests by `sequelize.transaction({ transaction: tx })`, which begins nothing through `tx`. */
export function lendSequelize(tx: SequelizeTransaction): Loan<SequelizeTransaction> {
  // `begin` commits in MySQL, and the last three replace the connection, or return it to the pool.
  const loan = lend(tx, { controls: ['commit', 'rollback', 'begin', 'prepareEnvironment', 'cleanup', 'forceCleanup'] });
  const waitForAll = async (): Promise<void> => {
    while (findNested(tx).length > 0) await pause(pollMs, { keepAlive: false });
  };
  return {
    tx: loan.tx,
    end(hasSucceeded) {
      for (const nested of findNested(tx)) {
        // What it sends last goes through its parent.
        if (hasSucceeded && nested.parent === loan.tx) nested.parent = tx;
        // Sequelize refuses every statement of a transaction that is finished.
        if (!hasSucceeded) nested.finished = 'rollback';
      }
      loan.end(hasSucceeded);
    },
    idle: () => (findNested(tx).length === 0 ? undefined : waitForAll()),
  };
}

/** Returns the nested transactions that run, in any depth. */
function findNested({ savepoints = [] }: SequelizeTransaction): SequelizeTransaction[] {
  return savepoints.flatMap((nested) => [...(nested.finished === undefined ? [nested] : []), ...findNested(nested)]);
}
