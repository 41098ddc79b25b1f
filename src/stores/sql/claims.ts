import { setBackgroundTimer, type Timer } from '../../lib/deadline.js';
import { TransferCallbackError } from '../../lib/errors.js';
import type { Claim, ClaimReply, ClaimRequest, StoreRecord } from '../../core/store.js';
import type { Ids, Row, HandledRow, Table } from './table.js';
import type { InTheWay, OpenTransaction, Send, SqlEngine } from './transaction.js';

export type Query = SqlEngine<never>['query'];

/** How often a claim is tried while rows that have ended, or connections that have broken, are in its way. */
export const claimTries = 3;

/** Which rows a call is about. */
export interface Records {
  /** The id of the row of the transfer. All claims of the transfer use the lock of this id. */
  readonly transfer: string;
  /** The ids of the rows that are claimed or read. The id of a refund comes first. */
  readonly ids: Ids;
}

/** How a database keeps the claims and the records of one table. */
export interface Mechanism<Tx> {
  claim(records: Records, request: ClaimRequest): Promise<ClaimReply<Tx>>;
  read(id: string, transfer: string): Promise<StoreRecord>;
  forget(id: string, fingerprint: string): Promise<boolean>;
  /** Tries what else a claim needs of the database. Rejects with what is missing. */
  readonly tryAll?: (records: Records, request: ClaimRequest) => Promise<void>;
}

/** The options that a mechanism needs. */
export interface MechanismSettings {
  /** How long the handler's transaction may wait between two statements, or null for the setting of the connection. */
  readonly idleTimeoutMs: number | null;
}

/** The replies to a claim that is not granted. */
type Refusal = Exclude<ClaimReply, { state: 'claimed' }>;

export const inProgress: Refusal = { state: 'in_progress' };

export function toRefusal({ fingerprint }: Row): Refusal {
  return fingerprint === null ? inProgress : { state: 'handled', fingerprint };
}

export function toHandledRecord({ token, fingerprint, handledAt, expiresAt }: HandledRow): StoreRecord {
  return {
    state: 'handled',
    fingerprint,
    delivery: token,
    handledAt: new Date(handledAt),
    expiresAt: new Date(expiresAt),
  };
}

/** Whether a call got no connection, or no reply. Another call would wait as long. */
export function isTimeout(error: unknown): error is TransferCallbackError {
  return error instanceof TransferCallbackError && error.code === 'STORE_TIMEOUT';
}

/** Makes `claim` of a transactional store. A claim that is sent twice is one. */
export function grantOnce<Tx>(
  claim: (records: Records, request: ClaimRequest) => Promise<TransactionClaim<Tx> | Refusal>,
): Mechanism<Tx>['claim'] {
  // At most as many as the pool has connections.
  const held: { readonly ids: string; readonly token: string; readonly claim: Claim<Tx> }[] = [];
  return async (records, request) => {
    const { token } = request;
    const ids = records.ids.join();
    const own = held.find((each) => each.token === token && each.ids === ids);
    if (own !== undefined) return { state: 'claimed', claim: own.claim };
    const granted = await claim(records, request);
    if ('state' in granted) return granted;
    const entry = { ids, token, claim: granted };
    held.push(entry);
    void granted.ended.then(() => held.splice(held.indexOf(entry), 1));
    return { state: 'claimed', claim: granted };
  };
}

/** How the database records the success of a claim, and shows it. */
interface Proof {
  /** Sends what records the success. Its last statement commits, and fails unless the claim is held. */
  record(send: Send): Promise<unknown>;
  /** Reads the row as it is committed. */
  look(): Promise<InTheWay | undefined>;
}

/** A claim that lasts as long as the transaction of its handler. */
export class TransactionClaim<Tx> implements Claim<Tx> {
  readonly tx: Tx;
  /** Resolves when the transaction has ended. */
  readonly ended: Promise<unknown>;
  readonly #transaction: OpenTransaction<Tx>;
  readonly #request: ClaimRequest;
  readonly #proof: Proof;
  #state: 'held' | 'handled' | 'ended' = 'held';
  #lapse: Timer;

  constructor(transaction: OpenTransaction<Tx>, request: ClaimRequest, proof: Proof) {
    this.tx = transaction.tx;
    this.#transaction = transaction;
    this.#request = request;
    this.#proof = proof;
    this.#lapse = this.#startLapse();
    this.ended = transaction.ended.then(() => {
      clearTimeout(this.#lapse);
      this.#end();
    });
  }

  renew(): Promise<boolean> {
    const isHeld = this.#state === 'held';
    if (isHeld) {
      clearTimeout(this.#lapse);
      this.#lapse = this.#startLapse();
    }
    return Promise.resolve(isHeld);
  }

  async settle(): Promise<{ overlapped: boolean }> {
    if (this.#state !== 'handled') await this.#commit(this.#state === 'ended');
    this.#state = 'handled';
    return { overlapped: false };
  }

  release(): Promise<void> {
    // Before the reply to the ROLLBACK: another delivery may have the claim by then.
    this.#end();
    return this.#transaction.rollback();
  }

  #end(): void {
    if (this.#state === 'held') this.#state = 'ended';
  }

  /** The receiver renews no longer: a handler that never ends must not keep its connection. */
  #startLapse(): Timer {
    return setBackgroundTimer(() => void this.release(), this.#request.leaseMs);
  }

  /**
   * Commits the handler's writes with the record. If that fails, the row tells what has become of them:
   *
   * | the row                | the claim     | they were                             |
   * | its own, and handled   |               | committed: only the reply was lost    |
   * | of another delivery    |               | rolled back: LEASE_LOST               |
   * | none, or not certain   | had lapsed    | rolled back: LEASE_LOST               |
   * | none, or not certain   | had not       | rolled back: rejects with the cause   |
   */
  async #commit(hasLapsed: boolean): Promise<void> {
    try {
      await this.#transaction.commit((send) => this.#proof.record(send));
    } catch (cause) {
      const found = await this.#proof.look().catch(() => undefined);
      const row = found === 'held' ? undefined : found;
      const isOwn = row?.token === this.#request.token;
      if (isOwn && row.fingerprint !== null) return;
      if (!hasLapsed && (isOwn || row === undefined)) throw cause;
      const message =
        'The claim has lapsed or passed to another delivery. The writes of this handler were rolled back.';
      throw new TransferCallbackError('LEASE_LOST', message, { cause });
    }
  }
}

/** Reads a row. */
export async function readRow(query: Query, table: Table, id: string): Promise<Row | undefined> {
  return table.toRow(await query(table.look([id])));
}

/** Ends a handled record if it has this fingerprint. */
export async function endRecord(query: Query, table: Table, id: string, fingerprint: string): Promise<boolean> {
  const token = `forgotten ${crypto.randomUUID()}`;
  await query(table.endRecord(id, fingerprint, token));
  return (await readRow(query, table, id))?.token === token;
}
