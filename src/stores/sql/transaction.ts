import type { ClaimRequest } from '../../core/store.js';
import { pause } from '../../lib/deadline.js';
import { lend, type ConnectionMethods } from './lend.js';

/** What the store needs of a database. */
export interface SqlEngine<Tx> {
  /** Sends one statement outside of any transaction. */
  readonly query: (sql: string) => Promise<readonly unknown[]>;
  /** Begins a transaction with `first`, within the times of the request. */
  begin(first: FirstStatement, request: ClaimRequest): Promise<OpenTransaction<Tx> | Refusal>;
}

/** The first statement of a transaction. */
export interface FirstStatement {
  readonly sql: string;
  /** Whether the row that `sql` returns grants the transaction. If not, it is rolled back. */
  readonly isGranted?: (row: unknown) => boolean;
}

/** A transaction that was refused. */
export interface Refusal {
  /** The row that the first statement has returned. */
  readonly row: unknown;
  /** Resolves when it was rolled back. */
  readonly ended: Promise<unknown>;
}

/** A transaction that has begun, and ends later. */
export interface OpenTransaction<Tx> {
  /** The library's transaction object, for the handler. */
  readonly tx: Tx;
  /** Resolves when the transaction has ended, either way. */
  readonly ended: Promise<unknown>;
  /** Runs a last statement, and commits. If either fails, rolls back and rejects. */
  commit(last: string): Promise<void>;
  /** Rolls back. Never rejects: what a server cannot be told, it does by itself when it loses the connection. */
  rollback(): Promise<void>;
}

/** How long a transaction may take, in milliseconds. */
export interface TransactionTimes {
  /** How long it may wait for a connection. */
  queueMs: number;
  /** How long it may last. */
  maxHeldMs: number;
}

/** How long a call waits for its database if its caller does not say, in milliseconds. */
export const patienceMs = 30_000;
/** How long a transaction may last if the caller of `claim` does not say. */
export const defaultHeldMs = 120_000;

/** Where a statement of the store stands in a transaction. */
export type StatementPlace = 'first' | 'last';

/** How a library runs a transaction. */
export interface TransactionRunner<Tx> {
  /** Begins, awaits `work`, and commits. Rolls back and rejects if `work` rejects. */
  run(work: (tx: Tx) => Promise<void>): PromiseLike<unknown>;
  /** Sends a statement within the transaction, and resolves with its rows. */
  send(sql: string, tx: Tx, place: StatementPlace): Promise<readonly unknown[]>;
}

/**
 * Turns `transaction(work)`, as every library has it, inside out: resolves when the transaction has begun, and ends it
 * later, by `commit` or `rollback`. `methods` are those of `tx`, if that is a bare connection. Nested transactions of the
 * handler are waited for, for at most `nestedMs`.
 */
export function openTransaction<Tx>(
  runner: TransactionRunner<Tx>,
  first: FirstStatement,
  methods?: ConnectionMethods,
  nestedMs = patienceMs / 2,
): Promise<OpenTransaction<Tx> | Refusal> {
  return new Promise((resolve, reject) => {
    let hasSentLast = false as boolean; // TypeScript does not see that the transaction sets it.
    const done = (async () => {
      await runner.run(async (tx) => {
        const [row] = await runner.send(first.sql, tx, 'first');
        if (first.isGranted?.(row) === false) {
          resolve({ row, ended });
          throw rolledBack;
        }
        const loan = lend(tx as Tx & object, methods);
        const last = await new Promise<string | undefined>((decide) => {
          const end = (statement?: string): void => {
            loan.end();
            decide(statement);
          };
          // It may also end by itself: at a deadline of the library, or with its connection. Then `commit` rejects.
          void ended.then(() => {
            end();
          });
          resolve({
            tx: loan.tx,
            ended,
            async commit(statement) {
              end(statement);
              await done;
              // The transaction of Knex resolves, too, if the handler has called its `rollback` or `commit`.
              if (!hasSentLast) throw endedEarly;
            },
            async rollback() {
              end();
              await ended;
            },
          });
        });
        const isIdle = await Promise.race([loan.idle().then(() => true), pause(nestedMs, { keepAlive: false })]);
        if (last === undefined || isIdle !== true) throw rolledBack;
        await runner.send(last, tx, 'last');
        hasSentLast = true;
      });
      reject(new Error('Expected `transaction` to call its function.'));
    })();
    const ended = done.catch(reject);
  });
}

const endedEarly = new Error('The handler has ended its transaction.');
const rolledBack = new Error('The transaction of the handler was rolled back.');
