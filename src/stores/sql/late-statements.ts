import { lateRefusal, readText, type Loan } from './lend.js';

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
  let isOpen = true;
  return {
    ...loan,
    end(hasSucceeded) {
      loan.end(hasSucceeded);
      if (hasSucceeded || !isOpen) return;
      isOpen = false;
      close();
    },
  };
}
