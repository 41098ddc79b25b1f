import { hasMethods, invalidSecret, onlyKnownOptions, wholeNumber } from '../lib/checks.js';
import { TransferCallbackError } from '../lib/errors.js';
import { describeHolder } from '../core/delivery.js';
import { leastRetentionMs, receiverDefaults } from '../core/options.js';
import type { CallbackStore, Claim, ClaimReply, ClaimRequest, StoreRecord } from '../core/store.js';

/** What the store uses of a `ClientSession`. */
interface MongoSession {
  readonly id?: unknown;
  startTransaction(options: object): void;
  inTransaction(): boolean;
  commitTransaction(): Promise<unknown>;
  abortTransaction(): Promise<unknown>;
  endSession(): Promise<unknown>;
}

/** What the store uses of a `MongoClient`. */
interface MongoClient {
  startSession(): MongoSession;
  db(name?: string): MongoDatabase;
}

interface MongoDatabase {
  collection(name: string, options: object): unknown;
  command(command: object): Promise<unknown>;
}

interface MongoCollection {
  findOne(filter: object, options?: object): Promise<Stored | null>;
  findOneAndUpdate(filter: object, update: object[], options?: object): Promise<Stored | null>;
  deleteOne(filter: object): Promise<{ deletedCount: number }>;
  deleteMany(filter: object): Promise<{ deletedCount: number }>;
  createIndex(keys: object, options: object): Promise<unknown>;
}

/** A document: the record of a callback, or the lease of a claim. */
interface Stored {
  readonly token: string;
  readonly claimedAt: Date;
  readonly expiresAt: Date;
  /** Of a record that is settled. */
  readonly fingerprint?: string;
  readonly settledAt?: Date;
  /** Of a lease: the session of the claim before, if that has lapsed. */
  readonly lapsed?: object | null;
  readonly isRenewed?: boolean;
  readonly leftMs?: number;
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

/** Times are those of the server. Updates decide in their pipelines: an upsert of MongoDB accepts no `$expr`. */
const hasEnded = { $lte: ['$expiresAt', '$$NOW'] };
const isLive = { $expr: { $gt: ['$expiresAt', '$$NOW'] } };
const after = (ms: number): object => ({ $add: ['$$NOW', ms] });
/** A text that begins with `$` would be the name of a field. */
const literal = (value: unknown): object => ({ $literal: value });
const isUnsettled = { fingerprint: { $exists: false } };
const upsert = { upsert: true, returnDocument: 'after' };
/** A record that a failover takes back must not have been acknowledged. */
const concerns = { readPreference: 'primary', writeConcern: { w: 'majority' } };
const ignore = (): void => undefined;

/**
 * Keeps records in MongoDB, through a `MongoClient` of the driver 6 or 7, such as that of Mongoose. Handlers get a session
 * with an open transaction as `context.tx`: their writes with `{ session: tx }` and the record are committed together. If the
 * transaction meets a conflict, the handler runs again. Needs a replica set. Throws INVALID_ARGUMENT.
 *
 * @example
 * const router = transferCallbackRouter({
 *   store: mongoStore(mongoClient),
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
  const store: MongoStore<MongoSession> = new Collections(client, options);
  return store as MongoStore<ReturnType<Client['startSession']>>;
}

/** Its methods are properties: an app may copy a store, to change one of them. */
class Collections implements MongoStore<MongoSession> {
  readonly transactional = true;
  readonly #client: MongoClient;
  readonly #database: MongoDatabase;
  readonly #records: MongoCollection;
  readonly #leases: MongoCollection;
  #checked: Promise<void> | undefined;

  constructor(client: MongoClient, { db, collection = 'transfer_callbacks' }: MongoStoreOptions) {
    this.#client = client;
    this.#database = client.db(db);
    const settings = { ...concerns, readConcern: { level: 'majority' } };
    this.#records = this.#database.collection(collection, settings) as MongoCollection;
    this.#leases = this.#database.collection(`${collection}_leases`, settings) as MongoCollection;
  }

  readonly claim = async (key: string, request: ClaimRequest): Promise<ClaimReply<MongoSession>> => {
    await (this.#checked ??= this.#requireTransactions());
    const settled = await this.#findSettled(key);
    if (settled?.fingerprint !== undefined) return { state: 'settled', fingerprint: settled.fingerprint };
    const session = this.#client.startSession();
    const claim = new MongoClaim(key, request, session, this.#records, this.#leases);
    try {
      const lease = await this.#takeLease(key, request, session);
      if (lease?.token === request.token) {
        // MongoDB keeps the transaction of a dead process, and what that has locked, for a minute.
        if (lease.lapsed) await this.#database.command({ killSessions: [lease.lapsed] }).catch(ignore);
        const record = await this.#takeRecord(key, request);
        if (record?.fingerprint === undefined) return { state: 'claimed', claim };
        await claim.release();
        return { state: 'settled', fingerprint: record.fingerprint };
      }
    } catch (error) {
      claim.release().catch(ignore);
      throw error;
    }
    await session.endSession();
    return { state: 'in_progress' };
  };

  readonly read = async (key: string): Promise<StoreRecord> => {
    // The lease first: it is deleted after the record is settled, so a claim that is being settled never reads as free.
    const projection = { token: 1, claimedAt: 1, leftMs: { $subtract: ['$expiresAt', '$$NOW'] } };
    const lease = await this.#leases.findOne({ _id: key, ...isLive }, { projection });
    const { fingerprint, token, settledAt, expiresAt } = (await this.#findSettled(key)) ?? {};
    if (fingerprint !== undefined)
      return { state: 'settled', fingerprint, delivery: token, settledAt, expiresAt } as StoreRecord;
    if (lease === null) return { state: 'free' };
    const { by } = describeHolder(lease.token);
    const since = { since: lease.claimedAt, leaseLeftMs: Number(lease.leftMs) };
    return { state: 'claimed', delivery: lease.token, ...(by !== undefined && { by }), ...since };
  };

  readonly forget = async (key: string, fingerprint: string): Promise<boolean> => {
    const settled = await this.#findSettled(key);
    if (settled?.fingerprint !== fingerprint) return false;
    return (await this.#records.deleteOne({ _id: key, fingerprint, token: settled.token })).deletedCount === 1;
  };

  readonly migrate = async (): Promise<void> => {
    for (const each of [this.#records, this.#leases])
      await each.createIndex({ expiresAt: 1 }, { expireAfterSeconds: 0 });
  };

  readonly prune = async ({ olderThanMs }: { olderThanMs: number }): Promise<number> => {
    const limits = { min: leastRetentionMs, max: Number.MAX_SAFE_INTEGER, example: receiverDefaults.retentionMs };
    const settledBefore = Number((await this.#hello()).localTime) - wholeNumber('olderThanMs', olderThanMs, limits);
    return (await this.#records.deleteMany({ settledAt: { $lt: new Date(settledBefore) } })).deletedCount;
  };

  async #requireTransactions(): Promise<void> {
    const { setName, msg } = await this.#hello().catch((error: unknown) => {
      this.#checked = undefined;
      throw error;
    });
    if (setName !== undefined || msg === 'isdbgrid') return;
    throw new TransferCallbackError(
      'NO_TRANSACTIONS',
      'The MongoDB server is in no replica set: it has no transactions.',
    );
  }

  async #hello(): Promise<{ setName?: unknown; msg?: unknown; localTime?: Date }> {
    return (await this.#database.command({ hello: 1 })) as object;
  }

  #findSettled(key: string): Promise<Stored | null> {
    return this.#records.findOne({ _id: key, fingerprint: { $exists: true }, ...isLive });
  }

  /** Resolves with the lease of the callback, which is this delivery's if its token is. */
  async #takeLease(key: string, { token, leaseMs }: ClaimRequest, { id }: MongoSession): Promise<Stored | null> {
    const isOwn = { $eq: ['$token', literal(token)] };
    const lapsed = { $cond: [isOwn, null, { $ifNull: ['$lsid', null] }] };
    const names = { _id: literal(key), token: literal(token), lsid: literal(id), lapsed };
    const lease = { ...names, claimedAt: '$$NOW', expiresAt: after(leaseMs) };
    const update = [{ $replaceWith: { $cond: [{ $or: [isOwn, hasEnded] }, lease, '$$ROOT'] } }];
    return this.#leases.findOneAndUpdate({ _id: key }, update, upsert).catch((error: unknown) => {
      // Another delivery has inserted it at the same moment.
      if ((error as { code?: unknown }).code === 11_000) return null;
      throw error;
    });
  }

  /**
   * Writes the token of the claim into the record, unless that is settled. From then on the claim before cannot be settled: its
   * transaction would change the same document.
   */
  #takeRecord(key: string, request: ClaimRequest): Promise<Stored | null> {
    const { token, event = '', externalId = '', retentionMs } = request;
    const names = { _id: literal(key), token: literal(token), event: literal(event), externalId: literal(externalId) };
    const record = { ...names, claimedAt: '$$NOW', expiresAt: after(retentionMs) };
    const isFree = { $or: [{ $lte: ['$fingerprint', null] }, hasEnded] };
    return this.#records.findOneAndUpdate(
      { _id: key },
      [{ $replaceWith: { $cond: [isFree, record, '$$ROOT'] } }],
      upsert,
    );
  }
}

/**
 * A claim is a lease, and a token in the record. They are two documents: the first read of the handler fixes what its
 * transaction sees, and a renewal of the record after that would make the settle fail.
 */
class MongoClaim implements Claim<MongoSession> {
  tx: MongoSession;
  readonly #held: { readonly _id: string; readonly token: string };
  readonly #request: ClaimRequest;
  readonly #session: MongoSession;
  readonly #records: MongoCollection;
  readonly #leases: MongoCollection;
  #loan: { hasEnded: boolean };
  #state: 'open' | 'settled' | 'released' = 'open';

  constructor(
    _id: string,
    request: ClaimRequest,
    session: MongoSession,
    records: MongoCollection,
    leases: MongoCollection,
  ) {
    this.#held = { _id, token: request.token };
    this.#request = request;
    this.#session = session;
    this.#records = records;
    this.#leases = leases;
    [this.tx, this.#loan] = begin(session);
  }

  readonly renew = async (): Promise<boolean> => {
    const expiresAt = { $cond: [hasEnded, '$expiresAt', after(this.#request.leaseMs)] };
    const update = [{ $set: { expiresAt, isRenewed: { $not: hasEnded } } }];
    return (await this.#leases.findOneAndUpdate(this.#held, update, { returnDocument: 'after' }))?.isRenewed === true;
  };

  readonly settle = async (): Promise<{ overlapped: boolean }> => {
    if (this.#state !== 'settled') await this.#commit();
    this.#state = 'settled';
    // If this fails, the lease ends by itself. The record tells that the callback is settled.
    await this.#leases.deleteOne(this.#held).catch(ignore);
    await this.#session.endSession();
    return { overlapped: false };
  };

  readonly restart = async (error: unknown): Promise<boolean> => {
    if (!isTransient(error)) return false;
    await this.#rollBack();
    // A conflict may also mean that the claim has passed to another delivery.
    if (!(await this.renew()) || this.#state !== 'open') return false;
    [this.tx, this.#loan] = begin(this.#session);
    return true;
  };

  readonly release = async (): Promise<void> => {
    if (this.#state === 'settled') return;
    this.#state = 'released';
    await this.#rollBack();
    await this.#session.endSession();
    await this.#records.deleteOne({ ...this.#held, ...isUnsettled });
    await this.#leases.deleteOne(this.#held);
  };

  async #rollBack(): Promise<void> {
    this.#loan.hasEnded = true;
    if (this.#session.inTransaction()) await this.#session.abortTransaction();
  }

  /** Commits the handler's writes with the record. If that fails, rejects with what has kept it from being recorded. */
  async #commit(): Promise<void> {
    const { fingerprint, retentionMs } = this.#request;
    const settled = { fingerprint: literal(fingerprint), settledAt: '$$NOW', expiresAt: after(retentionMs) };
    const session = this.#session;
    this.#loan.hasEnded = true;
    try {
      if (!session.inTransaction()) throw new Error('The handler has ended its transaction.');
      const held = { ...this.#held, ...isUnsettled };
      const record = await this.#records.findOneAndUpdate(held, [{ $set: settled }], { session });
      if (record === null) throw new Error('The record is no longer of this claim.');
      await session.commitTransaction().catch(async (error: unknown) => {
        if (!hasLabel(error, 'UnknownTransactionCommitResult')) throw error;
        await session.commitTransaction();
      });
    } catch (cause) {
      await this.#rollBack();
      const record = await this.#records.findOne({ _id: this.#held._id });
      const isOwn = record?.token === this.#held.token;
      // If it is recorded, only the reply to the commit was lost.
      if (isOwn && record.fingerprint !== undefined) return;
      if (isOwn) throw cause;
      const message = 'The claim has passed to another delivery. The writes of this handler were rolled back.';
      throw new TransferCallbackError('LEASE_LOST', message, { cause });
    }
  }
}

/** What would end the transaction, or begin another one. */
const controls = ['startTransaction', 'commitTransaction', 'abortTransaction', 'withTransaction', 'endSession'];

/** Begins a transaction. Returns the session for the handler, which the driver takes for one that has ended once its loan has. */
function begin(session: MongoSession): [MongoSession, { hasEnded: boolean }] {
  session.startTransaction({ ...concerns, readConcern: { level: 'snapshot' } });
  const loan = { hasEnded: false };
  const get = (_: MongoSession, name: string | symbol): unknown => {
    if (name === 'hasEnded' && loan.hasEnded) return true;
    if (controls.includes(name as string)) return refuseControl;
    const value: unknown = Reflect.get(session, name);
    return typeof value === 'function' ? (value.bind(session) as unknown) : value;
  };
  return [new Proxy(session, { get }), loan];
}

function refuseControl(): Promise<never> {
  const message = 'The store ends the transaction: return to commit, throw to roll back.';
  const refused = Promise.reject(new TransferCallbackError('TRANSACTION_CONTROL', message));
  // An app that does not await it must not end by it.
  refused.catch(ignore);
  return refused;
}

/** Whether the database has given up the transaction for another one. An app may have wrapped the error of the driver. */
function isTransient(error: unknown): boolean {
  const label = 'TransientTransactionError';
  return hasLabel(error, label) || hasLabel((error as Error | null | undefined)?.cause, label);
}

function hasLabel(error: unknown, label: string): boolean {
  return hasMethods(error, 'hasErrorLabel') && (error as { hasErrorLabel(name: string): boolean }).hasErrorLabel(label);
}
