import type { ClaimRequest } from '../../core/store.js';
import { lend, type ConnectionMethods } from './lend.js';
import type { Row } from './statements.js';

/** A transaction that has begun, and ends later. */
export interface OpenTransaction<Tx> {
  /** The library's transaction object. */
  readonly tx: Tx;
  /** Resolves when the transaction has ended, either way. */
  readonly ended: Promise<unknown>;
  /** Runs a last statement, and commits. If either fails, rolls back and rejects. */
  commit(last: string): Promise<void>;
  /** Rolls back. Never rejects: what a server cannot be told, it does by itself when it loses the connection. */
  rollback(): Promise<void>;
}

/** The statements of a claim. */
export interface ClaimStatements {
  readonly claim: string;
  readonly look: string;
  readonly mark: string;
}

/** The row that is in the way of a claim. */
export interface Refusal {
  readonly row: Row | undefined;
  /** Why the claim failed, if it did. */
  readonly failure: unknown;
}

/** What the store needs of a database. */
export interface SqlEngine<Tx> {
  /** Sends one statement outside of any transaction. */
  readonly query: Query;
  /**
   * Claims. If the claim is granted, begins a transaction with `mark`, and resolves with it. Otherwise resolves with the
   * row that `look` reads.
   */
  begin(statements: ClaimStatements, request: ClaimRequest): Promise<OpenTransaction<Tx> | Refusal>;
}

/** How long a transaction may take, in milliseconds. */
export interface TransactionTimes {
  /** How long it may wait for a connection. */
  queueMs: number;
  /** How long it may last. */
  maxHeldMs: number;
}

/** How long a transaction may last if the caller of `claim` does not say. */
export const defaultHeldMs = 120_000;

type Query = (sql: string) => Promise<readonly unknown[]>;

/**
 * Sends the claim. Resolves with `undefined` if it is granted, and otherwise with the row that is in its way. A claim
 * that fails looks too: in MySQL that is how it is refused, and a server that refuses every write may still show a
 * success that was recorded before.
 */
export async function claimOrLook(
  query: Query,
  { claim, look }: Pick<ClaimStatements, 'claim' | 'look'>,
  isGranted: (rows: readonly unknown[]) => boolean,
): Promise<Refusal | undefined> {
  let failure: unknown;
  try {
    if (isGranted(await query(claim))) return undefined;
  } catch (error) {
    failure = error;
  }
  const [row] = (await query(look).catch((error: unknown) => {
    throw failure ?? error;
  })) as readonly Row[];
  return { row, failure };
}

/** How a library runs a transaction. */
export interface TransactionRunner<Tx> {
  run(work: (tx: Tx) => Promise<void>): PromiseLike<unknown>;
  /** Sends the last statement. */
  send(last: string, tx: Tx): unknown;
  /** Sends the first statement, if the transaction has not begun with it. */
  prepare?(tx: Tx): unknown;
}

/**
 * Turns `transaction(work)`, as every library has it, inside out: resolves when the transaction has begun, and ends it
 * later, by `commit` or `rollback`. `methods` are those of `tx`, if that is a bare connection.
 */
export function openTransaction<Tx>(
  runner: TransactionRunner<Tx>,
  methods?: ConnectionMethods,
): Promise<OpenTransaction<Tx>> {
  return new Promise((resolve, reject) => {
    const done = (async () => {
      await runner.run(async (tx) => {
        await runner.prepare?.(tx);
        const last = await new Promise<string | undefined>((decide) => {
          const loan = lend(tx as Tx & object, methods);
          const end = (statement?: string): void => {
            loan.end();
            decide(statement);
          };
          resolve({
            tx: loan.tx,
            ended,
            async commit(statement) {
              end(statement);
              await done;
            },
            async rollback() {
              end();
              await ended;
            },
          });
        });
        if (last === undefined) throw new Error('The transaction of the handler was rolled back.');
        await runner.send(last, tx);
      });
      reject(new Error('Expected `transaction` to call its function.'));
    })();
    // It may also end by itself, for example at a deadline of the library. Then `commit` rejects.
    const ended = done.catch(reject);
  });
}
