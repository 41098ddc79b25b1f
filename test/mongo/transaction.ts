import type { ClientSession, Db, MongoClient } from 'mongodb';
import type { StoreTransaction } from 'transfer-callbacks/testing';

interface Row {
  _id: string;
}

/** The types of the driver do not show the client of a session. */
function databaseOf(session: ClientSession): Db {
  return (session as unknown as { client: MongoClient }).client.db();
}

/** A transaction that creates a collection would meet others that do. */
export async function createCollections(client: MongoClient): Promise<void> {
  await client.db().createCollection('writes');
  await client.db().createCollection('locks');
}

/** What handlers write, with the client of their session: the driver refuses another one. */
export function toTransaction(client: MongoClient): Required<StoreTransaction<ClientSession>> {
  return {
    write: (session, key) => databaseOf(session).collection('writes').insertOne({ key }, { session }),
    count: (key) => client.db().collection('writes').countDocuments({ key }, { readConcern: 'majority' }),
    fail: (session) =>
      databaseOf(session)
        .collection('writes')
        .updateOne({ key: 'none' }, { $unknown: { key: 1 } }, { session }),
    async rollback(session) {
      await session.abortTransaction();
    },
    lock: (session, _id) => databaseOf(session).collection<Row>('locks').insertOne({ _id }, { session }),
  };
}
