import { TransferCallbackError } from '../core/errors.js';
import type { Lease } from '../core/store.js';
import { transactionEnded } from './postgres-control.js';
import { fenceClient } from './postgres-fence.js';
import { nextTurn, setDeadline, type Checkout, type PgClient } from './postgres-pool.js';

export interface LeaseTerms {
  readonly leaseMs: number;
  /** Returns the SQL that commits. */
  readonly settleSql: () => string;
  /** Called for each renewal. */
  readonly onRenew: () => void;
  /** Called once, when the lease is over. */
  readonly onOver: () => void;
}

/** `settling` and `releasing`: the transaction's end was sent. `gone`: it was rolled back, or its end is unknown. */
type State = 'held' | 'settling' | 'releasing' | 'settled' | 'gone';

/** Holds the open transaction of a claim as a lease, for as long as its connection lives and it is renewed. */
export function leaseTransaction(
  { client, giveBack, destroy }: Checkout,
  { leaseMs, settleSql, onRenew, onOver }: LeaseTerms,
): Lease<PgClient> {
  const fence = fenceClient(client);
  let state: State = 'held';
  let cancelLapse = setDeadline(leaseMs, lose);
  client.on('error', lose);

  function end(as: 'settled' | 'gone', leave: () => void): void {
    if (state === 'settled' || state === 'gone') return;
    state = as;
    fence.close();
    cancelLapse();
    client.off('error', lose);
    onOver();
    leave();
  }

  function lose(): void {
    end('gone', destroy);
  }

  return {
    tx: fence.tx,
    async renew() {
      onRenew();
      // After the process was held up, that Postgres has ended the transaction may be in a socket not read yet.
      await nextTurn();
      if (state === 'settled' || state === 'gone') return false;
      cancelLapse();
      cancelLapse = setDeadline(leaseMs, lose);
      return true;
    },
    async settle() {
      if (state === 'settled') return { overlapped: false };
      if (state !== 'held') throw new TransferCallbackError('LEASE_LOST', 'The transaction was rolled back.');
      if (fence.isTransactionOpen()) {
        throw new TransferCallbackError(
          'TRANSACTION_CONTROL',
          'The handler has returned before the transaction that it began was committed.',
        );
      }
      state = 'settling';
      fence.close();
      try {
        await client.query(settleSql());
      } catch (error) {
        // The commit may have succeeded and its reply been lost: the next attempt will find the record.
        lose();
        throw isTransactionMissing(error) ? transactionEnded(error) : error;
      }
      end('settled', giveBack);
      return { overlapped: false };
    },
    async release() {
      // A commit or a statement of the handler may still be running: ROLLBACK would wait for it.
      if (state === 'settling' || (state === 'held' && fence.isBusy())) lose();
      if (state !== 'held') return;
      state = 'releasing';
      fence.close();
      try {
        await client.query('ROLLBACK');
      } catch (error) {
        lose();
        throw error;
      }
      end('gone', giveBack);
    },
  };
}

/** Whether Postgres has found no transaction to commit, or another one: it lacks the savepoint of the claim. */
function isTransactionMissing(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return code === '3B001' || code === '25P01';
}
