import type { Claim, ClaimRequest } from '../core/store.js';
import { nextTurn, setDeadline } from './postgres-deadline.js';
import { TransactionLease } from './postgres-lease.js';
import { checkOut, type Checkout, type PgClient, type PgPool } from './postgres-pool.js';
import {
  claimExpiredSql,
  claimSql,
  lookUpSql,
  settleLateSql,
  settleSql,
  slackMs,
  type Limits,
  type SessionSettings,
} from './postgres-sql.js';

interface Rows {
  readonly rows: readonly unknown[];
}

/** Claims callbacks in one table, each on a client of the pool, and knows the leases that this process holds. */
export class Claims {
  readonly #pool: PgPool;
  readonly #table: string;
  readonly #limits: Limits;
  readonly #leases = new Map<string, { token: string; lease: TransactionLease }>();
  #hasWarned = false;

  constructor(pool: PgPool, table: string, limits: Limits) {
    this.#pool = pool;
    this.#table = table;
    this.#limits = limits;
  }

  async claim(id: string, request: ClaimRequest): Promise<Claim<PgClient>> {
    const held = this.#leases.get(id);
    if (held?.token === request.token) return { state: 'claimed', lease: held.lease };
    if (held !== undefined) {
      // No connection is needed to know that this process holds the callback. Without a turn of the event loop a caller
      // that claims in a loop would starve the timer that ends the lease.
      await nextTurn();
      return { state: 'in_progress' };
    }
    const { timeoutMs, queueMs = timeoutMs, leaseMs } = request;
    const checkout = await checkOut(this.#pool, queueMs);
    // If the network drops every packet, nothing else would return this client to the pool.
    const cancel = setDeadline(timeoutMs ?? leaseMs, () => {
      checkout.destroy();
    });
    try {
      return await this.#claimOn(checkout, id, request);
    } catch (error) {
      checkout.destroy();
      throw error;
    } finally {
      cancel();
    }
  }

  async #claimOn(checkout: Checkout, id: string, request: ClaimRequest): Promise<Claim<PgClient>> {
    const { client } = checkout;
    const row = { id, ...request };
    const lease = await this.#insert(checkout, id, request, claimSql(this.#table, row, this.#limits));
    if (lease !== undefined) return { state: 'claimed', lease };
    const [found] = (await client.query(lookUpSql(this.#table, id))) as readonly Rows[];
    const record = found?.rows[0] as { fingerprint: string; live: boolean } | undefined;
    if (record?.live === false) {
      const late = await this.#insert(checkout, id, request, claimExpiredSql(this.#table, row, this.#limits));
      if (late !== undefined) return { state: 'claimed', lease: late };
      await client.query('ROLLBACK');
    }
    checkout.giveBack();
    return record?.live === true ? { state: 'settled', fingerprint: record.fingerprint } : { state: 'in_progress' };
  }

  /** Runs the SQL of a claim. Resolves with the lease if the record was inserted. */
  async #insert(
    checkout: Checkout,
    id: string,
    request: ClaimRequest,
    sql: string,
  ): Promise<TransactionLease | undefined> {
    const sentAt = performance.now();
    const { rows } = ((await checkout.client.query(sql)) as readonly Rows[]).at(-2) ?? { rows: [] };
    const settings = rows[0] as SessionSettings | undefined;
    if (settings === undefined) return undefined;
    const isLate = (): boolean => performance.now() - sentAt > slackMs;
    const lease = new TransactionLease(checkout, {
      leaseMs: request.leaseMs,
      settleSql: () => (isLate() ? settleLateSql(this.#table, { id, ...request }, settings) : settleSql),
      onRenew: () => {
        this.#warnWhenExhausted();
      },
      onOver: () => {
        if (this.#leases.get(id)?.lease === lease) this.#leases.delete(id);
      },
    });
    this.#leases.set(id, { token: request.token, lease });
    return lease;
  }

  /** Called while a handler has been running for a while: it may be waiting for a client that its own claim holds. */
  #warnWhenExhausted(): void {
    const { totalCount = Infinity, waitingCount = 0 } = this.#pool;
    if (this.#hasWarned || waitingCount === 0 || this.#leases.size < totalCount) return;
    this.#hasWarned = true;
    process.emitWarning(
      `Claims hold all ${totalCount} clients of the pool, and ${waitingCount} callers wait for one. A handler that uses ` +
        'the pool itself waits for the claims: use `context.tx`, or another pool. If none does, raise `max`.',
      { code: 'TRANSFER_CALLBACKS_POSTGRES_POOL_EXHAUSTED' },
    );
  }
}
