/**
 * Speaks MongoDB's protocol in front of the DocumentDB extension, so that the real driver has real transactions: one
 * connection of PostgreSQL for each. It is a double of the protocol, and not MongoDB. As MongoDB it ends a transaction by
 * killSessions, and at any error. It differs here: a second writer of a document is refused after 20 ms, in MongoDB
 * immediately, and there are no cursors, read concerns, write concerns or failovers.
 */
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { BSON, type Document } from 'mongodb';
import { Pool, type PoolClient } from 'pg';

const { deserialize, serialize, Long } = BSON;

/** Keeps the type of each number. */
const exact = { promoteValues: false };
const begin = "BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL lock_timeout = '20ms'";

const page = (call: string): string => `SELECT cursorpage::text AS reply FROM documentdb_api.${call}`;
const write = (call: string): string => `SELECT p_result::text AS reply FROM documentdb_api.${call}`;
const arguments_ = '($1, $2::text::documentdb_core.bson)';

const statements: Readonly<Record<string, string>> = {
  insert: write(`insert${arguments_}`),
  update: write(`update${arguments_}`),
  delete: write(`delete${arguments_}`),
  findAndModify: write(`find_and_modify${arguments_}`),
  find: page(`find_cursor_first_page${arguments_}`),
  aggregate: page(`aggregate_cursor_first_page${arguments_}`),
  create: `SELECT create_collection_view::text AS reply FROM documentdb_api.create_collection_view${arguments_}`,
  createIndexes: `SELECT create_indexes_non_concurrently::text AS reply FROM documentdb_api_internal.create_indexes_non_concurrently${arguments_}`,
};

/** What belongs to a session, and not to the command. */
const ofSession = ['lsid', 'txnNumber', 'autocommit', 'startTransaction', '$db', '$readPreference', '$clusterTime'];
const ofConcerns = ['readConcern', 'writeConcern'];

/**
 * The states of PostgreSQL in which MongoDB would report a conflict: serialization, deadlock, a lock that is not to be
 * had.
 */
const conflicts = ['40001', '40P01', '55P03'];

/** As DocumentDB reports an error of one write: five characters, of six bits each. */
function toState(code: number): string {
  return [0, 6, 12, 18, 24].map((shift) => String.fromCharCode(((code >> shift) & 63) + 48)).join('');
}

interface Session {
  readonly id: BSON.Binary;
}

/** Starts a gateway to this database, on a free port of the loopback. */
export async function startGateway(url: string) {
  // A transaction keeps one, and its next operation must not wait behind those that want one: in MongoDB it keeps none.
  const pool = new Pool({ connectionString: url, max: 750, idleTimeoutMillis: 0 });
  const commands = new Commands(pool);
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => undefined);
    serve(socket, (command) => commands.run(command, (server.address() as AddressInfo).port));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await commands.end();
      await pool.end();
    },
  };
}

class Commands {
  readonly #pool: Pool;
  readonly #open = new Map<string, PoolClient>();
  readonly #committed = new Set<string>();

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  async run(command: Document, port: number): Promise<Document> {
    const [name = ''] = Object.keys(command);
    if (/^(?:hello|ismaster)$/i.test(name)) return hello(port);
    if (name === 'endSessions') return { ok: 1 };
    if (name === 'killSessions') return this.#killSessions(command[name] as Session[]);
    const key =
      command.autocommit === false ? `${toHex(command.lsid as Session)} ${String(command.txnNumber)}` : undefined;
    if (name === 'commitTransaction') return this.#commit(key ?? '');
    if (name === 'abortTransaction') {
      await this.#rollBack(key ?? '');
      return { ok: 1 };
    }
    return key === undefined ? this.#runAlone(name, command) : this.#runWithin(key, name, command);
  }

  async end(): Promise<void> {
    await Promise.all([...this.#open.keys()].map((key) => this.#rollBack(key)));
  }

  async #killSessions(sessions: readonly Session[]): Promise<Document> {
    const killed = sessions.map(toHex);
    const keys = [...this.#open.keys()].filter((key) => killed.includes(key.split(' ')[0] ?? ''));
    await Promise.all(keys.map((key) => this.#rollBack(key)));
    return { ok: 1 };
  }

  async #runAlone(name: string, command: Document, isFirst = true): Promise<Document> {
    try {
      return await send(this.#pool, name, command);
    } catch (error) {
      const { code = '' } = error as { code?: string };
      // When it repeats an upsert that has met another one, DocumentDB no longer knows the time.
      if (isFirst && String(error).includes('$$NOW')) return this.#runAlone(name, command, false);
      return refuse(conflicts.includes(code) ? 112 : 8_000, `${code} ${(error as Error).message}`);
    }
  }

  async #runWithin(key: string, name: string, command: Document): Promise<Document> {
    try {
      if (command.startTransaction === true) await this.#begin(key);
      const client = this.#open.get(key);
      if (client === undefined) return noTransaction;
      const reply = await send(client, name, command);
      const [failed] = (reply.writeErrors ?? []) as { code: unknown; errmsg: string }[];
      if (failed === undefined) return reply;
      await this.#rollBack(key);
      if (!conflicts.includes(toState(Number(failed.code)))) return reply;
      return refuse(112, failed.errmsg, transient);
    } catch (error) {
      await this.#rollBack(key);
      const { code = '' } = error as { code?: string };
      return conflicts.includes(code) ? refuse(112, String(error), transient) : refuse(8_000, String(error));
    }
  }

  async #begin(key: string): Promise<void> {
    const client = await this.#pool.connect();
    this.#open.set(key, client);
    await client.query(begin);
  }

  #take(key: string): PoolClient | undefined {
    const client = this.#open.get(key);
    this.#open.delete(key);
    return client;
  }

  async #rollBack(key: string): Promise<void> {
    const client = this.#take(key);
    await client?.query('ROLLBACK');
    client?.release();
  }

  async #commit(key: string): Promise<Document> {
    if (this.#committed.has(key)) return { ok: 1 };
    const client = this.#take(key);
    if (client === undefined) return noTransaction;
    try {
      await client.query('COMMIT');
    } catch (error) {
      return refuse(112, String(error), transient);
    } finally {
      client.release();
    }
    this.#committed.add(key);
    return { ok: 1 };
  }
}

const transient = ['TransientTransactionError'];
const noTransaction = refuse(251, 'no such transaction', transient);

async function send(on: Pool | PoolClient, name: string, command: Document): Promise<Document> {
  const statement = statements[name];
  if (statement === undefined) return refuse(59, `no such command: '${name}'`);
  const hidden = [...ofSession, ...ofConcerns];
  const own = Object.fromEntries(Object.entries(command).filter(([field]) => !hidden.includes(field)));
  const bytes = Buffer.from(serialize(own)).toString('hex');
  const { rows } = await on.query<{ reply: string }>(statement, [command.$db, `BSONHEX${bytes}`]);
  const reply = deserialize(Buffer.from(rows[0]?.reply.slice(7) ?? '', 'hex'), exact);
  for (const failed of (reply.writeErrors ?? []) as { code: unknown; errmsg: string }[]) {
    if (/duplicate key/i.test(failed.errmsg)) failed.code = 11_000;
  }
  const { cursor } = reply as { cursor?: { id: unknown } };
  if (cursor !== undefined) cursor.id = Long.fromNumber(Number(cursor.id));
  return reply;
}

function refuse(code: number, errmsg: string, errorLabels: readonly string[] = []): Document {
  return { ok: 0, code, errmsg, errorLabels };
}

function toHex({ id }: Session): string {
  return id.toString('hex');
}

function hello(port: number): Document {
  const own = `127.0.0.1:${port}`;
  const replicaSet = { setName: 'rs0', setVersion: 1, primary: own, me: own, hosts: [own] };
  const versions = { minWireVersion: 0, maxWireVersion: 21, logicalSessionTimeoutMinutes: 30 };
  return { ok: 1, isWritablePrimary: true, ...replicaSet, ...versions };
}

const [query, reply, message] = [2_004, 1, 2_013];

/** Reads the messages of a client, and replies to one after the other. */
function serve(socket: Socket, run: (command: Document) => Promise<Document>): void {
  let received = Buffer.alloc(0);
  let last = Promise.resolve();
  socket.on('data', (data: Buffer) => {
    received = Buffer.concat([received, data]);
    while (received.length >= 4 && received.length >= received.readInt32LE(0)) {
      const one = received.subarray(0, received.readInt32LE(0));
      received = received.subarray(one.length);
      last = last.then(async () => {
        const document = await run(readCommand(one));
        if (!socket.destroyed) socket.write(toReply(one, document));
      });
    }
  });
}

function readCommand(one: Buffer): Document {
  // A first hello may be a query, whose document stands behind the name of a collection and two numbers.
  if (one.readInt32LE(12) === query) return deserialize(one.subarray(one.indexOf(0, 20) + 9));
  const command: Document = {};
  const sequences: Document = {};
  for (let at = 20; at < one.length;) {
    const kind = one[at];
    const section = one.subarray(at + 1, at + 1 + one.readInt32LE(at + 1));
    at += 1 + section.length;
    if (kind === 0) Object.assign(command, deserialize(section, exact));
    else {
      const end = section.indexOf(0, 4);
      sequences[section.toString('utf8', 4, end)] = [...readSequence(section.subarray(end + 1))];
    }
  }
  return { ...command, ...sequences };
}

function* readSequence(documents: Buffer): Generator<Document> {
  for (let at = 0; at < documents.length; at += documents.readInt32LE(at)) {
    yield deserialize(documents.subarray(at, at + documents.readInt32LE(at)), exact);
  }
}

function toReply(one: Buffer, document: Document): Buffer {
  const body = serialize(document);
  const isQuery = one.readInt32LE(12) === query;
  const header = Buffer.alloc(isQuery ? 36 : 21);
  header.writeInt32LE(header.length + body.length, 0);
  header.writeInt32LE(one.readInt32LE(4), 8);
  header.writeInt32LE(isQuery ? reply : message, 12);
  if (isQuery) header.writeInt32LE(1, 32);
  return Buffer.concat([header, body]);
}
