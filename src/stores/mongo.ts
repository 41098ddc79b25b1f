import { hasMethods, invalidArgument, invalidSecret, onlyKnownOptions, wholeNumber } from '../lib/checks.js';
import { TransferCallbackError } from '../lib/errors.js';
import { describeHolder } from '../core/delivery.js';
import { leastRetentionMs, receiverDefaults } from '../core/options.js';
import type { CallbackStore, Claim, ClaimReply, ClaimRequest, StoreRecord } from '../core/store.js';
import { refusal } from './sql/lend.js';

/** What the store uses of a `ClientSession`. */
interface MongoSession {
  readonly id?: unknown;
  startTransaction(options: object): void;
  inTransaction(): boolean;
  commitTransaction(): Promise<unknown>;
  abortTransaction(): Promise<unknown>;
  endSession(): Promise<unknown>;
}

/** What the store uses of a collection of the driver. */
interface MongoCollection {
  findOne(filter: object, options: object): Promise<unknown>;
  findOneAndUpdate(filter: object, update: object[], options: object): Promise<unknown>;
  updateOne(filter: object, update: object[], options?: object): Promise<{ matchedCount: number }>;
  deleteOne(filter: object): Promise<{ deletedCount: number }>;
  deleteMany(filter: object): Promise<{ deletedCount: number }>;
  createIndex(keys: { expiresAt: 1 }, options: object): Promise<unknown>;
}

/** What the store uses of a `MongoClient`. */
interface MongoClient {
  startSession(): MongoSession;
  db(name?: string): {
    collection(name: string, options: object): unknown;
    command(command: object): Promise<unknown>;
  };
}

/** Options of `mongoStore`. */
export interface MongoStoreOptions {
  /**
   * The database.
   * @default that of the connection string
   */
  db?: string | undefined;
  /**
   * The collection of the records. The leases are in a second one, whose name ends in `_leases`.
   * @default 'transfer_callbacks'
   */
  collection?: string | undefined;
}

/**
 * A store in two collections of MongoDB, with methods for them.
 *
 * @example
 * async function prepare(store: MongoStore<unknown>): Promise<void> {
 *   await store.migrate();
 * }
 */
export interface MongoStore<Tx> extends CallbackStore<Tx> {
  read(key: string): Promise<StoreRecord>;
  forget(key: string, fingerprint: string): Promise<boolean>;
  /** Creates the collections, each with an index by which MongoDB deletes what has ended. May be repeated. */
  migrate(): Promise<void>;
  /** Deletes the records that were settled more than `olderThanMs` ago (above 90 000). Resolves with their number. */
  prune(options: { olderThanMs: number }): Promise<number>;
}

/** The record of a callback. A claim writes its token, and the settle the rest. */
interface MongoRecord {
  readonly token: string;
  readonly fingerprint?: string;
  readonly settledAt?: Date;
  readonly expiresAt: Date;
}

interface Lease {
  readonly token: string;
  /** The session of the claim before, if that has lapsed. */
  readonly lapsed?: object | null;
  readonly claimedAt: Date;
  readonly leftMs: unknown;
}

/** Times are those of the server. Updates decide in their pipelines: an upsert of MongoDB accepts no `$expr`. */
const hasEnded = { $lte: ['$expiresAt', '$$NOW'] };
const isLive = { $expr: { $gt: ['$expiresAt', '$$NOW'] } };
const after = (ms: number): object => ({ $add: ['$$NOW', ms] });
/** A text that begins with `$` would be the name of a field. */
const literal = (value: unknown): object => ({ $literal: value });
const upsert = { upsert: true, returnDocument: 'after' } as const;

/**
 * Keeps records in MongoDB, through a `MongoClient` of the driver 6 or 7, such as that of Mongoose. Handlers get a session
 * with an open transaction as `context.tx`: their writes with `{ session: tx }` and the record are committed together. If the
 * transaction meets a conflict, the handler runs again. Needs a replica set. Throws INVALID_ARGUMENT.
 *
 * @example
 * const router = transferCallbackRouter({
 *   store: mongoStore(client),
 *   onSuccess: ({ data }, { tx }) => payouts.updateOne({ _id: data.externalId }, { $set: { paid: true } }, { session: tx }),
 *   onFailed: ({ data }, { tx }) => payouts.updateOne({ _id: data.externalId }, { $set: { failed: true } }, { session: tx }),
 * });
 */
export function mongoStore<Client extends MongoClient>(
  client: Client,
  options: MongoStoreOptions = {},
): MongoStore<ReturnType<Client['startSession']>> {
  if (!hasMethods(client, 'startSession', 'db')) {
    // The value may be a connection string with a password in it.
    throw invalidSecret('client', 'a MongoClient', client, 'mongoStore(mongoose.connection.getClient())');
  }
  onlyKnownOptions(options, ['db', 'collection']);
  const { db, collection = 'transfer_callbacks' } = options;
  if (db !== undefined) requireName('db', db, 'payouts');
  requireName('collection', collection, 'transfer_callbacks');
  const collections = new Collections(client, db, collection);
  const store: MongoStore<MongoSession> = {
    transactional: true,
    claim: (key, request) => collections.claim(key, request),
    read: (key) => collections.read(key),
    forget: (key, fingerprint) => collections.forget(key, fingerprint),
    migrate: () => collections.migrate(),
    prune: (limits) => collections.prune(limits),
  };
  return store as unknown as MongoStore<ReturnType<Client['startSession']>>;
}

function requireName(option: string, value: unknown, example: string): void {
  if (typeof value === 'string' && /^[^\0$]+$/.test(value)) return;
  throw invalidArgument(option, 'a name without `$`', value, `${option}: '${example}'`);
}

/** The two collections of a store. */
class Collections {
  readonly records: MongoCollection;
  readonly leases: MongoCollection;
  readonly #client: MongoClient;
  readonly #database: ReturnType<MongoClient['db']>;
  #hasTransactions: Promise<void> | undefined;

  constructor(client: MongoClient, db: string | undefined, name: string) {
    this.#client = client;
    this.#database = client.db(db);
    // A record that a failover takes back must not have been acknowledged.
    const concerns = { readPreference: 'primary', readConcern: { level: 'majority' }, writeConcern: { w: 'majority' } };
    this.records = this.#database.collection(name, concerns) as MongoCollection;
    this.leases = this.#database.collection(`${name}_leases`, concerns) as MongoCollection;
  }

  async claim(key: string, request: ClaimRequest): Promise<ClaimReply<MongoSession>> {
    await (this.#hasTransactions ??= this.#requireTransactions());
    const settled = await this.#findSettled(key);
    if (settled !== undefined) return { state: 'settled', fingerprint: settled.fingerprint };
    const session = this.#client.startSession();
    const claim = new MongoClaim(this, key, request, session);
    try {
      const lease = await this.#takeLease(key, request, session);
      if (lease?.token === request.token) {
        // MongoDB keeps the transaction of a dead process, and what that has locked, for a minute.
        if (lease.lapsed != null) await this.#database.command({ killSessions: [lease.lapsed] }).catch(ignore);
        const { fingerprint } = await this.#takeRecord(key, request);
        if (fingerprint === undefined) return { state: 'claimed', claim };
        await claim.release();
        return { state: 'settled', fingerprint };
      }
    } catch (error) {
      await claim.release().catch(ignore);
      throw error;
    }
    await session.endSession();
    return { state: 'in_progress' };
  }

  async read(key: string): Promise<StoreRecord> {
    // The lease first: it is deleted after the record is settled, so a claim that is being settled never reads as free.
    const projection = { token: 1, claimedAt: 1, leftMs: { $subtract: ['$expiresAt', '$$NOW'] } };
    const lease = (await this.leases.findOne({ _id: key, ...isLive }, { projection })) as Lease | null;
    const settled = await this.#findSettled(key);
    if (settled !== undefined) {
      const { fingerprint, token, settledAt, expiresAt } = settled;
      return { state: 'settled', fingerprint, delivery: token, ...(settledAt && { settledAt }), expiresAt };
    }
    if (lease === null) return { state: 'free' };
    const { by } = describeHolder(lease.token);
    return {
      state: 'claimed',
      delivery: lease.token,
      ...(by !== undefined && { by }),
      since: lease.claimedAt,
      leaseLeftMs: Number(lease.leftMs),
    };
  }

  async forget(key: string, fingerprint: string): Promise<boolean> {
    const settled = await this.#findSettled(key);
    if (settled?.fingerprint !== fingerprint) return false;
    return (await this.records.deleteOne({ _id: key, fingerprint, token: settled.token })).deletedCount === 1;
  }

  async migrate(): Promise<void> {
    for (const each of [this.records, this.leases]) await each.createIndex({ expiresAt: 1 }, { expireAfterSeconds: 0 });
  }

  async prune({ olderThanMs }: { olderThanMs: number }): Promise<number> {
    const range = { min: leastRetentionMs, max: Number.MAX_SAFE_INTEGER, example: receiverDefaults.retentionMs };
    wholeNumber('olderThanMs', olderThanMs, range);
    const { localTime } = await this.#hello();
    const { deletedCount } = await this.records.deleteMany({
      settledAt: { $lt: new Date(Number(localTime) - olderThanMs) },
    });
    return deletedCount;
  }

  async #requireTransactions(): Promise<void> {
    try {
      const { setName, msg } = await this.#hello();
      if (setName !== undefined || msg === 'isdbgrid') return;
    } catch (error) {
      this.#hasTransactions = undefined;
      throw error;
    }
    throw new TransferCallbackError(
      'NO_TRANSACTIONS',
      'The MongoDB server is in no replica set: it has no transactions.',
    );
  }

  async #hello(): Promise<{ setName?: unknown; msg?: unknown; localTime: Date }> {
    return (await this.#database.command({ hello: 1 })) as { localTime: Date };
  }

  async #findSettled(key: string): Promise<(MongoRecord & { fingerprint: string }) | undefined> {
    const record = await this.records.findOne({ _id: key, fingerprint: { $exists: true }, ...isLive }, {});
    return (record as (MongoRecord & { fingerprint: string }) | null) ?? undefined;
  }

  /** Resolves with the lease of the callback, which is this delivery's if its token is. */
  async #takeLease(key: string, { token, leaseMs }: ClaimRequest, { id }: MongoSession): Promise<Lease | undefined> {
    const isOwn = { $eq: ['$token', literal(token)] };
    const lapsed = { $cond: [isOwn, null, { $ifNull: ['$lsid', null] }] };
    const own = {
      _id: literal(key),
      token: literal(token),
      lsid: literal(id),
      lapsed,
      claimedAt: '$$NOW',
      expiresAt: after(leaseMs),
    };
    const pipeline = [{ $replaceWith: { $cond: [{ $or: [isOwn, hasEnded] }, own, '$$ROOT'] } }];
    try {
      return (await this.leases.findOneAndUpdate({ _id: key }, pipeline, upsert)) as Lease;
    } catch (error) {
      // Another delivery has inserted it at the same moment.
      if ((error as { code?: unknown }).code === 11_000) return undefined;
      throw error;
    }
  }

  /**
   * Writes the token of the claim into the record, unless that is settled. From then on the claim before cannot be settled: its
   * transaction would change the same document.
   */
  async #takeRecord(key: string, request: ClaimRequest): Promise<MongoRecord> {
    const { token, event = '', externalId = '', retentionMs } = request;
    const facts = { _id: literal(key), token: literal(token), event: literal(event), externalId: literal(externalId) };
    const isFree = { $or: [{ $lte: ['$fingerprint', null] }, hasEnded] };
    const own = { ...facts, claimedAt: '$$NOW', expiresAt: after(retentionMs) };
    const pipeline = [{ $replaceWith: { $cond: [isFree, own, '$$ROOT'] } }];
    return (await this.records.findOneAndUpdate({ _id: key }, pipeline, upsert)) as MongoRecord;
  }
}

/**
 * A claim is a lease, and a token in the record. They are two documents: the first read of the handler fixes what its
 * transaction sees, and a renewal of the record after that would make the settle fail.
 */
class MongoClaim implements Claim<MongoSession> {
  tx: MongoSession;
  readonly #store: Collections;
  readonly #request: ClaimRequest;
  readonly #session: MongoSession;
  readonly #held: { readonly _id: string; readonly token: string };
  #endLoan!: () => void;
  #state: 'open' | 'settled' | 'released' = 'open';

  constructor(store: Collections, key: string, request: ClaimRequest, session: MongoSession) {
    this.#store = store;
    this.#request = request;
    this.#session = session;
    this.#held = { _id: key, token: request.token };
    this.tx = this.#begin();
  }

  async renew(): Promise<boolean> {
    const expiresAt = { $cond: [hasEnded, '$expiresAt', after(this.#request.leaseMs)] };
    const renewed = [{ $set: { expiresAt, isRenewed: { $not: hasEnded } } }];
    const lease = await this.#store.leases.findOneAndUpdate(this.#held, renewed, { returnDocument: 'after' });
    return (lease as { isRenewed?: unknown } | null)?.isRenewed === true;
  }

  async settle(): Promise<{ overlapped: boolean }> {
    if (this.#state !== 'settled') await this.#commit();
    this.#state = 'settled';
    // If this fails, the lease ends by itself. The record tells that the callback is settled.
    await this.#store.leases.deleteOne(this.#held).catch(ignore);
    await this.#session.endSession();
    return { overlapped: false };
  }

  async restart(error: unknown): Promise<boolean> {
    if (!isTransient(error)) return false;
    await this.#rollBack();
    // A conflict may also mean that the claim has passed to another delivery.
    if (this.#state !== 'open' || !(await this.renew())) return false;
    this.tx = this.#begin();
    return true;
  }

  async release(): Promise<void> {
    if (this.#state === 'settled') return;
    this.#state = 'released';
    await this.#rollBack();
    await this.#session.endSession();
    await this.#store.records.deleteOne({ ...this.#held, fingerprint: { $exists: false } });
    await this.#store.leases.deleteOne(this.#held);
  }

  #begin(): MongoSession {
    const { tx, end } = lendSession(this.#session);
    this.#endLoan = end;
    this.#session.startTransaction({
      readPreference: 'primary',
      readConcern: { level: 'snapshot' },
      writeConcern: { w: 'majority' },
    });
    return tx;
  }

  async #rollBack(): Promise<void> {
    this.#endLoan();
    if (this.#session.inTransaction()) await this.#session.abortTransaction();
  }

  /** Commits the handler's writes with the record. If that fails, rejects with what has kept it from being recorded. */
  async #commit(): Promise<void> {
    const { fingerprint, retentionMs } = this.#request;
    const { records } = this.#store;
    this.#endLoan();
    try {
      if (!this.#session.inTransaction()) throw new Error('The handler has ended its transaction.');
      const settled = { fingerprint: literal(fingerprint), settledAt: '$$NOW', expiresAt: after(retentionMs) };
      const unsettled = { ...this.#held, fingerprint: { $exists: false } };
      const { matchedCount } = await records.updateOne(unsettled, [{ $set: settled }], { session: this.#session });
      if (matchedCount !== 1) throw new Error('The record is no longer of this claim.');
      await commitTwice(this.#session);
    } catch (cause) {
      await this.#rollBack();
      const record = (await records.findOne({ _id: this.#held._id }, {})) as MongoRecord | null;
      // If it is recorded, only the reply to the commit was lost.
      if (record?.token === this.#held.token && record.fingerprint !== undefined) return;
      if (record?.token === this.#held.token) throw cause;
      const message = 'The claim has passed to another delivery. The writes of this handler were rolled back.';
      throw new TransferCallbackError('LEASE_LOST', message, { cause });
    }
  }
}

/** What would end the transaction, or begin another one. */
const controls = ['startTransaction', 'commitTransaction', 'abortTransaction', 'withTransaction', 'endSession'];

/** Lends a session to a handler. From `end` on the driver takes it for one that has ended, and sends nothing for it. */
function lendSession(session: MongoSession): { readonly tx: MongoSession; readonly end: () => void } {
  let hasEnded = false;
  const tx = new Proxy(session, {
    get(_, name) {
      if (name === 'hasEnded' && hasEnded) return true;
      if (controls.includes(name as string)) return refuseControl;
      const value: unknown = Reflect.get(session, name);
      // On the session itself: the driver compares it.
      return typeof value === 'function' ? (value.bind(session) as unknown) : value;
    },
  });
  return {
    tx,
    end() {
      hasEnded = true;
    },
  };
}

function refuseControl(): Promise<never> {
  const refused = Promise.reject(refusal('the store ends the transaction. Return to commit, throw to roll back'));
  // `startTransaction` is awaited by nobody.
  refused.catch(ignore);
  return refused;
}

async function commitTwice(session: MongoSession): Promise<void> {
  try {
    await session.commitTransaction();
  } catch (error) {
    if (!hasLabel(error, 'UnknownTransactionCommitResult')) throw error;
    await session.commitTransaction();
  }
}

/** Whether the database has given up the transaction for another one. An app may have wrapped the error of the driver. */
function isTransient(error: unknown): boolean {
  return (
    hasLabel(error, 'TransientTransactionError') ||
    hasLabel((error as Error | null)?.cause, 'TransientTransactionError')
  );
}

function hasLabel(error: unknown, label: string): boolean {
  return hasMethods(error, 'hasErrorLabel') && (error as { hasErrorLabel(name: string): boolean }).hasErrorLabel(label);
}

const ignore = (): void => undefined;
