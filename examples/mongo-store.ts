/**
 * A store of your own, on MongoDB. It has passed `storeContract` on a server that speaks MongoDB's protocol. It has
 * never run on MongoDB itself: try it there before you use it.
 */
import { fileURLToPath } from 'node:url';
import { MongoClient, MongoError, type ClientSession, type Collection, type Document } from 'mongodb';
import {
  transferCallbackReceiver,
  type CallbackStore,
  type Claim,
  type ClaimReply,
  type ClaimRequest,
  type HandlerContext,
  type StoreRecord,
  type TransferCallback,
} from 'transfer-callbacks/web';
import { transferSucceeded } from 'transfer-callbacks/testing';

/** A document: the record of a callback, or the lease of a claim. Either has a time at which it ends. */
interface Stored {
  readonly _id: string;
  readonly token: string;
  readonly claimedAt: Date;
  readonly expiresAt: Date;
  /** Set in a record that is handled. */
  readonly fingerprint?: string;
  readonly handledAt?: Date;
  /** Set in a lease: the session of the claim before, if that has lapsed. */
  readonly lapsed?: Document | null;
  readonly isRenewed?: boolean;
}

/** What a claim is made of. */
interface Parts {
  readonly key: string;
  readonly request: ClaimRequest;
  readonly session: ClientSession;
  readonly client: MongoClient;
  readonly records: Collection<Stored>;
  readonly leases: Collection<Stored>;
}

export interface MongoStore extends CallbackStore<ClientSession> {
  /** Creates the collections, each with an index by which MongoDB deletes what has ended. May be repeated. */
  migrate(): Promise<void>;
}

/** Times are those of the server. */
const isLive = { $expr: { $gt: ['$expiresAt', '$$NOW'] } };
const hasEnded = { $lte: ['$expiresAt', '$$NOW'] };
const after = (ms: number): Document => ({ $add: ['$$NOW', ms] });
const isHandled = { fingerprint: { $exists: true }, ...isLive };
const isUnsettled = { fingerprint: { $exists: false } };
/** A string that begins with `$` would be the name of a field. */
const literal = (value: unknown): Document => ({ $literal: value });
/** A record that a failover takes back must not have been acknowledged. */
const concerns = { readPreference: 'primary', writeConcern: { w: 'majority' } } as const;
const ignore = (): void => undefined;

/**
 * Keeps records in two collections of MongoDB, which must be a replica set, because a standalone server has no
 * transactions. The handler's `context.tx` is a session with an open transaction: writes with `{ session: tx }` and the
 * record are committed together. Mongoose has such a client in its connection. It takes no reversals: a receiver with
 * `onReversed` refuses it, because it has no claim of both records.
 */
export function mongoStore(client: MongoClient, name = 'transfer_callbacks'): MongoStore {
  const open = (collection: string): Collection<Stored> =>
    client.db().collection<Stored>(collection, { ...concerns, readConcern: { level: 'majority' } });
  const [records, leases] = [open(name), open(`${name}_leases`)];
  return {
    transactional: true,
    async claim(key, request) {
      const { fingerprint } = (await records.findOne({ _id: key, ...isHandled })) ?? {};
      if (fingerprint !== undefined) return { state: 'handled', fingerprint };
      return claim({ key, request, session: client.startSession(), client, records, leases });
    },
    async read(key) {
      // The lease first: it is deleted after the record is handled, so a claim that is being settled is never free.
      const lease = await leases.findOne({ _id: key, ...isLive });
      return toRecord(lease, await records.findOne({ _id: key, ...isHandled }));
    },
    forget: async (key, fingerprint) => (await records.deleteOne({ _id: key, fingerprint })).deletedCount === 1,
    async migrate() {
      // An hour later: a lapsed lease has the session of a dead process, for the claim that takes over.
      for (const each of [records, leases]) await each.createIndex({ expiresAt: 1 }, { expireAfterSeconds: 3_600 }, {});
    },
  };
}

function toRecord(lease: Stored | null, record: Stored | null): StoreRecord {
  if (record?.fingerprint !== undefined) {
    const { token, fingerprint, handledAt = record.claimedAt, expiresAt } = record;
    return { state: 'handled', fingerprint, delivery: token, handledAt, expiresAt };
  }
  if (lease === null) return { state: 'free' };
  const { token, claimedAt, expiresAt } = lease;
  return { state: 'claimed', delivery: token, since: claimedAt, leaseLeftMs: expiresAt.getTime() - Date.now() };
}

/** Claims a callback that has not been seen as handled. */
async function claim(parts: Parts): Promise<ClaimReply<ClientSession>> {
  const held = toClaim(parts);
  try {
    const lease = await takeLease(parts);
    if (lease?.token !== parts.request.token) {
      await parts.session.endSession();
      return { state: 'in_progress' };
    }
    // MongoDB keeps the transaction of a dead process, and the documents that it has locked, for a minute.
    if (lease.lapsed) {
      await parts.client
        .db()
        .command({ killSessions: [lease.lapsed] })
        .catch(ignore);
    }
    const record = await takeRecord(parts);
    if (record?.fingerprint === undefined) return { state: 'claimed', claim: held };
    await held.release();
    return { state: 'handled', fingerprint: record.fingerprint };
  } catch (error) {
    held.release().catch(ignore);
    // Another delivery has inserted the lease at the same moment.
    if (error instanceof MongoError && error.code === 11_000) return { state: 'in_progress' };
    throw error;
  }
}

/** Resolves with the lease of the callback, which is this delivery's if its token is. */
function takeLease({ key, request: { token, leaseMs }, session, leases }: Parts): Promise<Stored | null> {
  const isOwn = { $eq: ['$token', literal(token)] };
  const lapsed = { $cond: [isOwn, null, '$lsid'] };
  const names = { _id: key, token, lsid: session.id };
  return replaceIf({ $or: [isOwn, hasEnded] }, leases, names, { lapsed, expiresAt: after(leaseMs) });
}

/**
 * Writes the token of the claim into the record, unless that is handled. From then on the claim before cannot be
 * settled: its transaction would change the same document.
 */
function takeRecord({ key, request, records }: Parts): Promise<Stored | null> {
  const { token, event = '', externalId = '', retentionMs } = request;
  const isFree = { $or: [{ $lte: ['$fingerprint', null] }, hasEnded] };
  return replaceIf(isFree, records, { _id: key, token, event, externalId }, { expiresAt: after(retentionMs) });
}

/**
 * Replaces a document under a condition, or inserts it. Resolves with the one that is there then. The condition is in
 * the update, because MongoDB accepts no `$expr` in the filter of an upsert.
 */
function replaceIf(
  condition: Document,
  within: Collection<Stored>,
  names: Document & { _id: string },
  times: Document,
) {
  const replacement = { $mergeObjects: [literal(names), { ...times, claimedAt: '$$NOW' }] };
  const update = [{ $replaceWith: { $cond: [condition, replacement, '$$ROOT'] } }];
  return within.findOneAndUpdate({ _id: names._id }, update, { upsert: true, returnDocument: 'after' });
}

/**
 * A claim is a lease, and a token in the record. They are two documents: the first read of the handler fixes what its
 * transaction sees, and a renewal of the record after that would make the settle fail.
 */
function toClaim(parts: Parts): Claim<ClientSession> {
  const { key, request, session, records, leases } = parts;
  const held = { _id: key, token: request.token };
  const loan = begin(session);
  const rollBack = async (): Promise<void> => {
    loan.hasEnded = true;
    if (session.inTransaction()) await session.abortTransaction();
  };
  return {
    tx: loan.tx,
    async renew() {
      const expiresAt = { $cond: [hasEnded, '$expiresAt', after(request.leaseMs)] };
      const renewal = [{ $set: { expiresAt, isRenewed: { $not: hasEnded } } }];
      return (await leases.findOneAndUpdate(held, renewal, { returnDocument: 'after' }))?.isRenewed === true;
    },
    async settle() {
      loan.hasEnded = true;
      try {
        await commit(parts, held);
      } catch (cause) {
        await rollBack();
        const record = await records.findOne({ _id: key });
        if (record?.token !== request.token) throw new Error(passedOn, { cause });
        // If it is recorded, only the reply to the commit was lost.
        if (record.fingerprint === undefined) throw cause;
      }
      // If this fails, the lease ends by itself. Its session is then kept: who takes over must not end another claim
      // with it.
      await leases.deleteOne(held).then(() => session.endSession(), ignore);
      return { overlapped: false };
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
async function commit({ request, session, records }: Parts, held: { _id: string; token: string }): Promise<void> {
  const { fingerprint, retentionMs } = request;
  const handled = { fingerprint: literal(fingerprint), handledAt: '$$NOW', expiresAt: after(retentionMs) };
  if (!session.inTransaction()) throw new Error('The handler has ended its transaction.');
  const record = await records.findOneAndUpdate({ ...held, ...isUnsettled }, [{ $set: handled }], { session });
  if (record === null) throw new Error('The record is no longer of this claim.');
  await session.commitTransaction().catch((error: unknown) => {
    const isUnknown = error instanceof MongoError && error.hasErrorLabel('UnknownTransactionCommitResult');
    if (isUnknown) return session.commitTransaction();
    throw error;
  });
}

/** What would end the transaction, or begin another one. */
const controls = ['startTransaction', 'commitTransaction', 'abortTransaction', 'withTransaction', 'endSession'];

/**
 * Begins a transaction. Once its loan has ended, the driver takes the session of the handler for one that has ended.
 */
function begin(session: ClientSession): { readonly tx: ClientSession; hasEnded: boolean } {
  session.startTransaction({ ...concerns, readConcern: { level: 'snapshot' } });
  const get = (_: ClientSession, name: string | symbol): unknown => {
    if (name === 'hasEnded' && loan.hasEnded) return true;
    if (controls.includes(String(name))) return refuseControl;
    const value: unknown = Reflect.get(session, name);
    return typeof value === 'function' ? (value.bind(session) as unknown) : value;
  };
  const loan = { tx: new Proxy(session, { get }), hasEnded: false };
  return loan;
}

function refuseControl(): never {
  throw new Error('The store ends the transaction: return to commit, throw to roll back.');
}

/** What was paid in a currency. */
export interface Paid {
  readonly _id: string;
  readonly amount: number;
}

/** Makes a handler that adds up what was paid in each currency. A second run would add it again. */
export function addUpIn(paid: Collection<Paid>) {
  return async ({ data }: TransferCallback, { tx }: HandlerContext<ClientSession>): Promise<void> => {
    // Without `session` this would be kept although the record is not.
    await paid.updateOne({ _id: data.currency }, { $inc: { amount: data.amount } }, { session: tx, upsert: true });
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const client = new MongoClient(process.env.MONGODB_URL ?? 'mongodb://localhost:27017/app?replicaSet=rs0');
  const paid = await client.db().createCollection<Paid>('paid');
  const store = mongoStore(client);
  await store.migrate();

  const receiver = transferCallbackReceiver({ store, onSuccess: addUpIn(paid), onFailed: () => undefined });
  const callback = transferSucceeded();
  for (const delivery of ['first', 'second']) {
    console.log(`The ${delivery} delivery: ${(await receiver.receive(callback)).outcome}`);
  }
  const { currency } = callback.data;
  console.log(`Paid in all: ${(await paid.findOne({ _id: currency }))?.amount} ${currency}`);
  await client.close();
}
