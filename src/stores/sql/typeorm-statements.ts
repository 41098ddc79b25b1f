import { lateRefusal, readText, type Loan } from './lend.js';

/** What TypeORM sends when it ends a transaction, or a nested one. */
const endText = /^(?:COMMIT|ROLLBACK|RELEASE)\b/;

/** The connection of a transaction. TypeORM sends all its statements by this method, those of repositories, too. */
interface QueryRunner {
  query(sql: unknown, ...more: readonly unknown[]): Promise<unknown>;
}

/** The source, or the manager of a transaction. */
interface Manager {
  readonly query: (sql: string) => PromiseLike<unknown>;
  readonly queryRunner?: QueryRunner | undefined;
}

/**
 * Refuses what a handler sends after its end without `tx`: by a repository that it has kept, or by a call of several steps that
 * still runs. Behind the ROLLBACK of the store the database would commit such a statement by itself.
 */
export class TypeormStatements {
  /** The statement of the store that was sent last. */
  readonly #own = new WeakMap<QueryRunner, string>();

  /** Sends a statement of the store. */
  send(sql: string, manager: Manager): PromiseLike<unknown> {
    if (manager.queryRunner !== undefined) this.#own.set(manager.queryRunner, sql);
    return manager.query(sql);
  }

  /** Makes the end of the loan also that of its connection. */
  endWith<Tx>(loan: Loan<Tx>, { queryRunner }: Manager): Loan<Tx> {
    return {
      ...loan,
      end: (hasSucceeded) => {
        loan.end(hasSucceeded);
        if (queryRunner !== undefined) this.#close(queryRunner);
      },
    };
  }

  /** TypeORM makes another object for each transaction. */
  #close(runner: QueryRunner): void {
    const query = runner.query.bind(runner);
    runner.query = (sql, ...more) => {
      const text = readText(sql);
      const isAllowed = text === this.#own.get(runner) || endText.test(text);
      return isAllowed ? query(sql, ...more) : Promise.reject(lateRefusal());
    };
  }
}
