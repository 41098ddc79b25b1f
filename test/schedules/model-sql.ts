import type { CallbackStore, Claim, ClaimReply, ClaimRequest } from 'transfer-callbacks';
import type { StoredRecord } from './model-redis.js';

/** Sends a command, and resolves with the reply. */
type Call = (...words: (string | number)[]) => Promise<unknown>;

/** What is wrong in a store that claims two records. */
export type SqlFault =
  /** The refund is claimed without the lock of the transfer, and the transfer without the lock of its refund. */
  | 'one lock'
  /** A claim of both inserts the row of the transfer only. */
  | 'one row'
  /** Inserts if its snapshot has no row, and commits what it has inserted although another row was in the way. */
  | 'commits a part'
  /** Looks for rows before it has the locks, and not afterwards. */
  | 'looks first';

/** The first words of the commands of `modelSqlStore`, which have the name of the claimed record next. */
export const sqlCommands = ['SNAPSHOT', 'INSERT', 'ROLLBACK', 'LOOK', 'RENEW', 'COMMIT'];

/**
 * PostgreSQL, as far as a store uses it: locks that wait for nobody, rows that count when they are committed, and
 * statements that see a snapshot. A row of an open transaction is `claimed`, under a key of its own, and ends with the
 * lease of its claim. Two transactions may insert one row: no lock but that of the claim is modelled.
 */
export class ModelSql {
  readonly records = new Map<string, StoredRecord>();
  readonly #locks = new Map<string, string>();
  readonly #snapshots = new Map<string, ReadonlySet<string>>();

  /** Runs a command as it is sent, and returns the reply. */
  run([name = '', , claimed = '', ...args]: readonly string[], now: number): unknown {
    switch (name) {
      case 'SNAPSHOT':
        this.#snapshots.set(claimed, new Set(this.#handledKeys()));
        return 'OK';
      case 'INSERT':
        return this.#insert(claimed, args, now);
      case 'ROLLBACK':
        this.#end(claimed);
        return 'OK';
      case 'LOOK':
        return this.#look(claimed, args);
      case 'RENEW':
        return this.#renew(claimed, now + Number(args[0]));
      case 'COMMIT':
        return this.#commit(claimed, args[0] ?? '', now + Number(args[1]));
      default:
        throw new Error(`The model of SQL does not know the command ${name}.`);
    }
  }

  /** Ends the transactions whose leases are over, and returns a row of each. */
  lapse(now: number): StoredRecord[] {
    const lapsed = [...this.records.values()].filter(({ expiresAt }) => expiresAt <= now);
    for (const { value } of lapsed) this.#end(value);
    return lapsed.filter(({ value }, index) => lapsed.findIndex((other) => other.value === value) === index);
  }

  fingerprint(): string {
    const snapshots = [...this.#snapshots].map(([claimed, keys]) => `${claimed} saw ${[...keys].sort().join()}`);
    return [...[...this.#locks].map((lock) => lock.join(' by ')).sort(), ...snapshots.sort()].join();
  }

  #handledKeys(): string[] {
    return [...this.records].filter(([, { value }]) => value.startsWith('handled ')).map(([key]) => key);
  }

  /** As `INSERT … ON CONFLICT DO NOTHING`, which does not depend on its snapshot unless it reads the table, too. */
  #insert(claimed: string, [leaseMs, how, ...words]: string[], now: number): string {
    const ids = words.slice(0, words.indexOf('LOCKS'));
    const locks = words.slice(words.indexOf('LOCKS') + 1);
    if (locks.some((key) => (this.#locks.get(key) ?? claimed) !== claimed)) return 'HELD';
    if (how === 'READS' && ids.some((id) => this.#snapshots.get(claimed)?.has(id))) return 'NONE';
    const handled = how === 'BLIND' ? [] : this.#handledKeys();
    const free = ids.filter((id) => !handled.includes(id));
    if (free.length === 0) return 'NONE';
    for (const key of locks) this.#locks.set(key, claimed);
    for (const id of free) this.records.set(`${id} ${claimed}`, { value: claimed, expiresAt: now + Number(leaseMs) });
    return free.length === ids.length ? 'OK' : 'PART';
  }

  /** Reads the first handled row. With COMMIT, what the transaction has inserted is committed. */
  #look(claimed: string, [commit = '', ...ids]: string[]): string | null {
    if (commit !== '') this.#commit(claimed, commit, Infinity);
    const found = ids.map((id) => this.records.get(id)?.value ?? '');
    return found.find((value) => value.startsWith('handled ')) ?? null;
  }

  #renew(claimed: string, expiresAt: number): number {
    const keys = this.#openKeys(claimed);
    for (const key of keys) this.records.set(key, { value: claimed, expiresAt });
    return keys.length;
  }

  #openKeys(claimed: string): string[] {
    return [...this.records].filter(([, { value }]) => value === claimed).map(([key]) => key);
  }

  #commit(claimed: string, handled: string, expiresAt: number): string | null {
    const keys = this.#openKeys(claimed);
    this.#end(claimed);
    for (const key of keys) this.records.set(key.slice(0, -` ${claimed}`.length), { value: handled, expiresAt });
    return keys.length === 0 ? null : 'OK';
  }

  /** Ends a transaction, and with it its locks and what it has inserted. */
  #end(claimed: string): void {
    for (const key of this.#openKeys(claimed)) this.records.delete(key);
    for (const [key, holder] of this.#locks) if (holder === claimed) this.#locks.delete(key);
    this.#snapshots.delete(claimed);
  }
}

/** Claims one or two records as the stores of PostgreSQL do. */
export function modelSqlStore({ call }: { readonly call: Call }, prefix: string, fault?: SqlFault): CallbackStore {
  return {
    transactional: true,
    claimsBoth: true,
    async claim(key, request) {
      const { record = 'transfer', token, leaseMs } = request;
      const claimed = `claimed ${token}`;
      const transfer = prefix + key;
      const refund = `${prefix}reversed\u001f${key}`;
      const ids = { transfer: [transfer], reversal: [refund], both: [refund, transfer] }[record];
      const locks = fault === 'one lock' ? ids.slice(-1) : [...new Set([transfer, ...ids])];
      const rows = fault === 'one row' ? ids.slice(-1) : ids;
      const handled = renderHandled(request);
      const look = async (...end: string[]): Promise<ClaimReply> =>
        toReply(await call('LOOK', record, claimed, end[0] ?? '', ...ids));
      if (fault === 'looks first') {
        const found = await look();
        if (found.state === 'handled') return found;
      }
      await call('SNAPSHOT', record, claimed);
      const how = fault === 'looks first' ? 'BLIND' : fault === 'commits a part' ? 'READS' : '';
      const inserted = await call('INSERT', record, claimed, leaseMs, how, ...rows, 'LOCKS', ...locks);
      if (inserted === 'OK') return { state: 'claimed', claim: toClaim(call, record, request) };
      if (inserted !== 'PART') return look();
      if (fault === 'commits a part') return look(handled);
      await call('ROLLBACK', record, claimed);
      return look();
    },
  };
}

function toReply(found: unknown): ClaimReply {
  if (typeof found !== 'string') return { state: 'in_progress' };
  return { state: 'handled', fingerprint: found.split(' ').slice(2).join(' ') };
}

function renderHandled({ token, fingerprint }: ClaimRequest): string {
  return `handled ${token} ${fingerprint}`;
}

function toClaim(call: Call, record: string, request: ClaimRequest): Claim {
  const claimed = `claimed ${request.token}`;
  return {
    tx: undefined,
    renew: async () => Number(await call('RENEW', record, claimed, request.leaseMs)) > 0,
    async settle() {
      const reply = await call('COMMIT', record, claimed, renderHandled(request), request.retentionMs);
      if (reply === null) throw new Error('The claim has lapsed.');
      return { overlapped: false };
    },
    async release() {
      await call('ROLLBACK', record, claimed);
    },
  };
}
