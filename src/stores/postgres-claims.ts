import { TransferCallbackError } from '../core/errors.js';
import type { Claim, ClaimRequest } from '../core/store.js';
import { KeptNote } from './kept-note.js';
import { nextTurn, setDeadline } from './postgres-deadline.js';
import { TransactionLease } from './postgres-lease.js';
import { checkOut, runOnce, type Checkout, type PgClient, type PgPool } from './postgres-pool.js';
import {
  claimExpiredSql,
  claimSql,
  lookUpSql,
  noteSql,
  settleLateSql,
  settleSql,
  slackMs,
  type Limits,
  type SessionSettings,
} from './postgres-sql.js';

/** How long the note may wait for a client of the pool, and then for the reply. In milliseconds. */
const noteTimeoutMs = 2_000;

interface Rows {
  readonly rows: readonly unknown[];
}

/** What a claim replies with: only texts, because an app may have changed how its driver parses all else. */
interface ClaimedRow extends SessionSettings {
  /** The schema in which the `search_path` finds the table. */
  readonly schema: string;
  /** `open`: other code had begun a transaction on the client, and the claim is a part of it. */
  readonly transaction: 'own' | 'open';
}

/** The record that a claim has found, in texts too. */
interface FoundRow {
  readonly schema: string;
  readonly fingerprint: string;
  readonly state: 'live' | 'expired';
}

/** Claims callbacks in one table, each on a client of the pool, and knows the leases that this process holds. */
export class PostgresClaims {
  readonly #pool: PgPool;
  readonly #table: string;
  readonly #limits: Limits;
  readonly #leases = new Map<string, { token: string; lease: TransactionLease }>();
  readonly #note: KeptNote;
  #schema: string | undefined;
  #hasWarned = false;

  constructor(pool: PgPool, table: string, limits: Limits) {
    this.#pool = pool;
    this.#table = table;
    this.#limits = limits;
    this.#note = new KeptNote(async (retentionMs) => {
      // The client of the lease that is over goes back first. Otherwise the note could wait for a handler.
      await nextTurn();
      return runOnce(pool, noteSql(table, retentionMs), noteTimeoutMs);
    });
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
      throw isOpenAlready(error) ? clientUnusable(leftOpen, error) : error;
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
    const record = found?.rows[0] as FoundRow | undefined;
    // A record of another table acknowledges nothing.
    if (record !== undefined) this.#requireSameSchema(record.schema);
    if (record?.state === 'expired') {
      const late = await this.#insert(checkout, id, request, claimExpiredSql(this.#table, row, this.#limits));
      if (late !== undefined) return { state: 'claimed', lease: late };
      await client.query('ROLLBACK');
    }
    checkout.giveBack();
    return record?.state === 'live' ? { state: 'settled', fingerprint: record.fingerprint } : { state: 'in_progress' };
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
    const settings = rows[0] as ClaimedRow | undefined;
    if (settings === undefined) return undefined;
    if (settings.transaction === 'open') throw clientUnusable(leftOpen);
    this.#requireSameSchema(settings.schema);
    const isLate = (): boolean => performance.now() - sentAt > slackMs;
    const lease = new TransactionLease(checkout, {
      leaseMs: request.leaseMs,
      settleSql: () => (isLate() ? settleLateSql(this.#table, { id, ...request }, settings) : settleSql),
      onRenew: () => {
        this.#warnWhenExhausted();
      },
      onOver: () => {
        if (this.#leases.get(id)?.lease === lease) this.#leases.delete(id);
        this.#note.renew(request.retentionMs);
      },
    });
    this.#leases.set(id, { token: request.token, lease });
    return lease;
  }

  /**
   * Throws if the table is another one than that of the first claim: code has changed the `search_path` of a client and
   * not restored it. The handler would run again for what is recorded in the other table.
   */
  #requireSameSchema(schema: string): void {
    this.#schema ??= schema;
    if (this.#schema !== schema) throw clientUnusable(movedTo(schema, this.#schema));
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

const leftOpen =
  'a transaction was open on it, which other code had begun and not ended before it released the client. That transaction is rolled back.';

function movedTo(schema: string, first: string): string {
  return (
    `its search_path finds the table in schema ${schema}, and that of the first claim was in ${first}. ` +
    'Set the `schema` option, and change settings with SET LOCAL only.'
  );
}

/** Whether Postgres has refused the BEGIN of a claim within an older transaction: one that failed, or is no READ COMMITTED. */
function isOpenAlready(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return code === '25P02' || code === '25001';
}

/** Makes the error for a client that the app has left in a state in which no claim may run on it. It is destroyed. */
function clientUnusable(why: string, cause?: unknown): TransferCallbackError {
  return new TransferCallbackError('STORE_REPLY_UNEXPECTED', `A client of the pool was not usable: ${why}`, { cause });
}
