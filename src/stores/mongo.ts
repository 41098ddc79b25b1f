import { hasMethods, invalidSecret, onlyKnownOptions } from '../lib/checks.js';
import { TransferCallbackError, listCauses } from '../lib/errors.js';
import { describeHolder } from '../core/delivery.js';
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
  createIndex(keys: object, options: object): Promise<unknown>;
}

/** A document: the record of a callback, or the lease of a claim. Either has a time at which it ends. */
interface Stored {
  readonly token: string;
  /** Set in a record that is settled. */
  readonly fingerprint?: string;
  /** Set in a lease: the session of the claim before, if that has lapsed. */
  readonly lapsed?: object | null;
  readonly isRenewed?: boolean;
}

/** What a claim is made of. */
interface ClaimParts {
  readonly key: string;
  readonly request: ClaimRequest;
  readonly session: MongoSession;
  readonly database: MongoDatabase;
  readonly records: MongoCollection;
  readonly leases: MongoCollection;
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
export interface MongoStore<Tx> extends Required<Omit<CallbackStore<Tx>, 'processLocal' | 'check'>> {
  /** Creates the collections, each with an index by which MongoDB deletes what has ended. May be repeated. */
  migrate(): Promise<void>;
}

/**
 * Times are those of the server. Updates and deletions have none in their filters: the server of the tests refuses it.
 */
const isLive = { $expr: { $gt: ['$expiresAt', '$$NOW'] } };
const hasEnded = { $lte: ['$expiresAt', '$$NOW'] };
const after = (ms: number): object => ({ $add: ['$$NOW', ms] });
const isSettled = { fingerprint: { $exists: true }, ...isLive };
const isUnsettled = { fingerprint: { $exists: false } };
/** A string that begins with `$` would be the name of a field. */
const literal = (value: unknown): object => ({ $literal: value });
/** A record that a failover takes back must not have been acknowledged. */
const concerns = { readPreference: 'primary', writeConcern: { w: 'majority' } };
const ignore = (): void => undefined;

/**
 * Keeps records in MongoDB, through a `MongoClient` of the driver 6 or 7, such as that of Mongoose. Handlers get a
 * session with an open transaction as `context.tx`: their writes with `{ session: tx }` and the record are committed
 * together. If the transaction meets a conflict, the handler runs again. Needs a replica set. Throws INVALID_ARGUMENT.
 *
 * @experimental It has run on a server that speaks MongoDB's protocol, and not yet on MongoDB itself.
 * @example
 * const router = transferCallbackRouter({
 *   store: mongoStore(mongoClient),
 *   onSuccess: ({ data }, { tx }) => ledger.insertOne({ _id: data.externalId, paid: true }, { session: tx }),
 *   onFailed: ({ data }, { tx }) => ledger.insertOne({ _id: data.externalId, paid: false }, { session: tx }),
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
  const database = client.db(db);
  const open = (name: string): MongoCollection =>
    database.collection(name, { ...concerns, readConcern: { level: 'majority' } }) as MongoCollection;
  const [records, leases] = [open(collection), open(`${collection}_leases`)];
  let hasTransactions = false;
  return {
    transactional: true,
    async claim(key, request) {
      hasTransactions ||= await requireTransactions(database);
      const { fingerprint } = (await records.findOne({ _id: key, ...isSettled })) ?? {};
      if (fingerprint !== undefined) return { state: 'settled', fingerprint };
      return claim({ key, request, session: client.startSession(), database, records, leases });
    },
    read: (key) => read(records, leases, key),
    forget: async (_id, fingerprint) => (await records.deleteOne({ _id, fingerprint })).deletedCount === 1,
    async migrate() {
      // An hour later: a lapsed lease has the session of a dead process, for the claim that takes over.
      for (const each of [records, leases]) await each.createIndex({ expiresAt: 1 }, { expireAfterSeconds: 3_600 });
    },
  } satisfies MongoStore<MongoSession> as MongoStore<ReturnType<Client['startSession']>>;
}

async function requireTransactions(database: MongoDatabase): Promise<true> {
  const { setName, msg } = (await database.command({ hello: 1 })) as { setName?: unknown; msg?: unknown };
  if (setName !== undefined || msg === 'isdbgrid') return true;
  const message = 'The MongoDB server is in no replica set: it has no transactions.';
  throw new TransferCallbackError('NO_TRANSACTIONS', message);
}

async function read(records: MongoCollection, leases: MongoCollection, key: string): Promise<StoreRecord> {
  const leaseLeftMs = { $toDouble: { $subtract: ['$expiresAt', '$$NOW'] } };
  const held = { _id: 0, state: literal('claimed'), token: 1, since: '$claimedAt', leaseLeftMs };
  const settled = { _id: 0, state: literal('settled'), fingerprint: 1, delivery: '$token', settledAt: 1, expiresAt: 1 };
  // The lease first: it is deleted after the record is settled, so a claim that is being settled never reads as free.
  const lease = await leases.findOne({ _id: key, ...isLive }, { projection: held });
  const record = await records.findOne({ _id: key, ...isSettled }, { projection: settled });
  if (lease === null || record !== null) return (record ?? { state: 'free' }) as StoreRecord;
  const { token, ...claimed } = lease;
  return { ...describeHolder(token), ...claimed, delivery: token } as StoreRecord;
}

/** Claims a callback that has not been seen as settled. */
async function claim(parts: ClaimParts): Promise<ClaimReply<MongoSession>> {
  const held = toClaim(parts);
  try {
    const lease = await takeLease(parts);
    if (lease?.token !== parts.request.token) {
      await parts.session.endSession();
      return { state: 'in_progress' };
    }
    // MongoDB keeps the transaction of a dead process, and the documents that it has locked, for a minute.
    if (lease.lapsed) await parts.database.command({ killSessions: [lease.lapsed] }).catch(ignore);
    const record = await takeRecord(parts);
    if (record?.fingerprint === undefined) return { state: 'claimed', claim: held };
    await held.release();
    return { state: 'settled', fingerprint: record.fingerprint };
  } catch (error) {
    held.release().catch(ignore);
    // Another delivery has inserted the lease at the same moment.
    if ((error as { code?: unknown }).code === 11_000) return { state: 'in_progress' };
    throw error;
  }
}

/** Resolves with the lease of the callback, which is this delivery's if its token is. */
function takeLease({ key, request: { token, leaseMs }, session, leases }: ClaimParts): Promise<Stored | null> {
  const isOwn = { $eq: ['$token', literal(token)] };
  const lapsed = { $cond: [isOwn, null, '$lsid'] };
  const names = { _id: key, token, lsid: session.id };
  return replaceIf({ $or: [isOwn, hasEnded] }, leases, names, { lapsed, expiresAt: after(leaseMs) });
}

/**
 * Writes the token of the claim into the record, unless that is settled. From then on the claim before cannot be
 * settled: its transaction would change the same document.
 */
function takeRecord({ key, request, records }: ClaimParts): Promise<Stored | null> {
  const { token, event = '', externalId = '', retentionMs } = request;
  const isFree = { $or: [{ $lte: ['$fingerprint', null] }, hasEnded] };
  return replaceIf(isFree, records, { _id: key, token, event, externalId }, { expiresAt: after(retentionMs) });
}

/**
 * Replaces a document under a condition, or inserts it. Resolves with the one that is there then. The condition is in
 * the update, because MongoDB accepts no `$expr` in the filter of an upsert.
 */
function replaceIf(condition: object, within: MongoCollection, names: Record<string, unknown>, times: object) {
  const replacement = { $mergeObjects: [literal(names), { ...times, claimedAt: '$$NOW' }] };
  const update = [{ $replaceWith: { $cond: [condition, replacement, '$$ROOT'] } }];
  return within.findOneAndUpdate({ _id: names._id }, update, { upsert: true, returnDocument: 'after' });
}

/**
 * A claim is a lease, and a token in the record. They are two documents: the first read of the handler fixes what its
 * transaction sees, and a renewal of the record after that would make the settle fail.
 */
function toClaim(parts: ClaimParts): Claim<MongoSession> {
  const { key, request, session, records, leases } = parts;
  const held = { _id: key, token: request.token };
  let loan = begin(session);
  const rollBack = async (): Promise<void> => {
    loan.hasEnded = true;
    if (session.inTransaction()) await session.abortTransaction();
  };
  const renew = async (): Promise<boolean> => {
    const expiresAt = { $cond: [hasEnded, '$expiresAt', after(request.leaseMs)] };
    const renewal = [{ $set: { expiresAt, isRenewed: { $not: hasEnded } } }];
    return (await leases.findOneAndUpdate(held, renewal, { returnDocument: 'after' }))?.isRenewed === true;
  };
  return {
    get tx() {
      return loan.tx;
    },
    renew,
    async settle() {
      loan.hasEnded = true;
      try {
        await commit(parts, held);
      } catch (cause) {
        await rollBack();
        const record = await records.findOne({ _id: key });
        if (record?.token !== request.token) throw new TransferCallbackError('LEASE_LOST', passedOn, { cause });
        // If it is recorded, only the reply to the commit was lost.
        if (record.fingerprint === undefined) throw cause;
      }
      // If this fails, the lease ends by itself. Its session is then kept: who takes over must not end another claim
      // with it.
      await leases.deleteOne(held).then(() => session.endSession(), ignore);
      return { overlapped: false };
    },
    async restart(error) {
      // A conflict may also mean that the claim has passed to another delivery.
      if (!hasLabel(error, 'TransientTransactionError') || !(await renew())) return false;
      await rollBack();
      loan = begin(session);
      return true;
    },
    async release() {
      await rollBack();
      await records.deleteOne({ ...held, ...isUnsettled });
      await leases.deleteOne(held);
      await session.endSession();
    },
  };
}

const passedOn = 'The claim has passed to another delivery. The writes of this handler were rolled back.';

/** Commits the handler's writes with the record, if that is still of this claim. */
async function commit({ request, session, records }: ClaimParts, held: object): Promise<void> {
  const { fingerprint, retentionMs } = request;
  const settled = { fingerprint: literal(fingerprint), settledAt: '$$NOW', expiresAt: after(retentionMs) };
  if (!session.inTransaction()) throw new Error('The handler has ended its transaction.');
  const record = await records.findOneAndUpdate({ ...held, ...isUnsettled }, [{ $set: settled }], { session });
  if (record === null) throw new Error('The record is no longer of this claim.');
  await session.commitTransaction().catch((error: unknown) => {
    if (hasLabel(error, 'UnknownTransactionCommitResult')) return session.commitTransaction();
    throw error;
  });
}

/** What would end the transaction, or begin another one. */
const controls = ['startTransaction', 'commitTransaction', 'abortTransaction', 'withTransaction', 'endSession'];

/**
 * Begins a transaction. Once its loan has ended, the driver takes the session of the handler for one that has ended.
 */
function begin(session: MongoSession): { readonly tx: MongoSession; hasEnded: boolean } {
  session.startTransaction({ ...concerns, readConcern: { level: 'snapshot' } });
  const get = (_: MongoSession, name: string | symbol): unknown => {
    if (name === 'hasEnded' && loan.hasEnded) return true;
    if (controls.includes(name as string)) return refuseControl;
    const value: unknown = Reflect.get(session, name);
    return typeof value === 'function' ? (value.bind(session) as unknown) : value;
  };
  const loan = { tx: new Proxy(session, { get }), hasEnded: false };
  return loan;
}

function refuseControl(): never {
  const message = 'The store ends the transaction: return to commit, throw to roll back.';
  throw new TransferCallbackError('TRANSACTION_CONTROL', message);
}

/** Whether an error of the driver, which an app may have wrapped, has this label. */
function hasLabel(error: unknown, label: string): boolean {
  return listCauses(error).some(
    (each) => hasMethods(each, 'hasErrorLabel') && (each as unknown as LabelledError).hasErrorLabel(label),
  );
}

interface LabelledError {
  hasErrorLabel(label: string): boolean;
}
