import type { Pool, PoolClient } from 'pg';
import { memoryStore, type CallbackStore, type Claim } from 'transfer-callbacks';

/** What a handler gets as `tx`. */
export type Tx = Pick<PoolClient, 'query'>;

/** A transactional store with one fault, and the beginnings of the titles of the checks that must catch it. */
export interface BrokenTransaction {
  readonly fault: string;
  readonly change: Change;
  readonly caughtBy: readonly string[];
  /** A part of what the failing check says. */
  readonly says: RegExp;
}

/** What a lease is made of: a claim of a memory store, and a client of which a transaction is open. */
interface Parts {
  readonly claim: Claim;
  readonly client: PoolClient;
  /** Ends the transaction unless it has ended. */
  readonly end: (sql: 'COMMIT' | 'ROLLBACK') => Promise<void>;
  /** Rejects unless the transaction that the claim has begun is still open, and has not failed. */
  readonly requireTransaction: () => Promise<void>;
}

type Change = (parts: Parts) => Partial<Claim<Tx>>;

/**
 * A store whose handlers write in a transaction on PostgreSQL, and which is right but for a crash: it settles its
 * claims in this process.
 */
export function transactionStore(pool: Pool, change: Change = () => ({})): CallbackStore<Tx> {
  const claims = memoryStore();
  return {
    transactional: true,
    async claim(key, request) {
      const claimed = await claims.claim(key, request);
      if (claimed.state !== 'claimed') return claimed;
      const client = await pool.connect();
      await client.query('BEGIN');
      // PostgreSQL forgets this setting with the transaction.
      await client.query("SELECT set_config('contract.token', $1, true)", [request.token]);
      let isOpen = true;
      const parts: Parts = {
        claim: claimed.claim,
        client,
        async end(sql) {
          if (!isOpen) return;
          isOpen = false;
          await client.query(sql);
          client.release();
        },
        async requireTransaction() {
          const { rows } = await client.query<{ token: string }>(
            "SELECT current_setting('contract.token', true) AS token",
          );
          if (rows[0]?.token !== request.token) throw new Error('The transaction has ended.');
        },
      };
      const query = (text: string, values: unknown[]): Promise<unknown> =>
        isOpen ? client.query(text, values) : Promise.reject(new Error('The claim is over.'));
      return { state: 'claimed', claim: { ...toLease({ query } as Tx, parts), ...change(parts) } };
    },
  };
}

function toLease(tx: Tx, { claim, end, requireTransaction }: Parts): Claim<Tx> {
  let isHandled = false;
  return {
    tx,
    renew: () => claim.renew(),
    async settle() {
      if (isHandled) return { overlapped: false };
      if (!(await claim.renew())) throw new Error('Another delivery has taken the callback over.');
      await requireTransaction();
      await end('COMMIT');
      isHandled = true;
      return claim.settle();
    },
    async release() {
      await end('ROLLBACK');
      await claim.release();
    },
  };
}

/** Stores whose handlers write in a transaction that does not end as their claim does. */
export const brokenTransactions: readonly BrokenTransaction[] = [
  {
    fault: 'forgets to commit',
    change: ({ claim, end }) => ({ settle: () => end('ROLLBACK').then(() => claim.settle()) }),
    caughtBy: ['a write through `tx` is kept'],
    says: /a claim was handled, and the write of its handler is not there/,
  },
  {
    fault: 'commits when it releases',
    change: ({ claim, end }) => ({ release: () => end('COMMIT').then(() => claim.release()) }),
    caughtBy: ['a write through `tx` is undone'],
    says: /a claim was released, and the write of its handler is there/,
  },
  {
    fault: 'gives the handler a client that takes queries after the end of the claim',
    change: ({ client }) => ({ tx: client }),
    caughtBy: ['a write through `tx` is kept', 'writes that a handler'],
    says: /`tx` has written after its claim was (handled|released)/,
  },
  {
    fault: 'settles beside the transaction, and commits after that',
    change: ({ claim, end }) => ({ settle: () => claim.settle().finally(() => end('COMMIT')) }),
    caughtBy: [
      "a late holder's write",
      'a handler that swallows a failed',
      'a handler that rolls',
      'a handler that swallows a deadlock',
    ],
    says: /the write of its handler is not there|2 were kept/,
  },
  {
    fault: 'refuses a ROLLBACK of the handler, and commits before it refuses to settle',
    change({ claim, client, end }) {
      let hasSentRollback = false;
      const query = (text: string, values: unknown[]): Promise<unknown> => {
        if (text !== 'ROLLBACK') return client.query(text, values);
        hasSentRollback = true;
        return Promise.reject(new Error('The transaction is not yours to end.'));
      };
      return {
        tx: { query } as Tx,
        async settle() {
          await end('COMMIT');
          if (hasSentRollback) throw new Error('The handler has sent ROLLBACK.');
          return claim.settle();
        },
      };
    },
    caughtBy: ['a handler that rolls'],
    says: /2 of the two writes were kept/,
  },
];
