import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { neonConfig, Pool as NeonPool } from '@neondatabase/serverless';
import { createPool, type PoolConnection } from 'mysql2/promise';
import { Pool, type PoolClient } from 'pg';
import postgres, { type TransactionSql } from 'postgres';
import { WebSocket, WebSocketServer } from 'ws';
import { openFile } from './databases.js';
import { toTransaction, type Library, type Opened } from './opened.js';

type PgTx = Pick<PoolClient, 'query'>;
type MysqlTx = Pick<PoolConnection, 'query' | 'execute'>;

const pg: Library = {
  name: 'pg',
  open: { postgres: (url, max) => openPool(new Pool({ connectionString: url, max })) },
};

const neon: Library = {
  name: '@neondatabase/serverless',
  open: {
    async postgres(url, max) {
      const port = await (relay ??= startRelay());
      neonConfig.webSocketConstructor = WebSocket;
      neonConfig.useSecureWebSocket = false;
      neonConfig.pipelineConnect = false;
      neonConfig.wsProxy = (_host, postgresPort) => `127.0.0.1:${port}/${postgresPort}`;
      return openPool(new NeonPool({ connectionString: url, max }));
    },
  },
};

let relay: Promise<number> | undefined;

/**
 * Passes WebSockets on to the PostgreSQL on the port in their path, as Neon does before its own. Resolves with its own
 * port.
 */
async function startRelay(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1').unref();
  await once(server, 'listening');
  new WebSocketServer({ server }).on('connection', (webSocket, { url }) => {
    const socket = connect(Number(url?.slice(1)), '127.0.0.1');
    webSocket.on('message', (bytes: Buffer) => socket.write(bytes));
    webSocket.on('close', () => socket.destroy());
    socket.on('data', (bytes) => {
      webSocket.send(bytes);
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      webSocket.close();
    });
  });
  return (server.address() as AddressInfo).port;
}

function openPool(client: Pool | NeonPool): Opened<Pool | NeonPool, PgTx> {
  const pool = client as Pool;
  pool.on('error', () => undefined); // A connection that the server has broken.
  return {
    client,
    transaction: toTransaction<PgTx>({
      insert: (tx, table, name) => tx.query(`INSERT INTO ${table} (name) VALUES ($1)`, [name]),
      read: async (name) => (await pool.query<object>('SELECT name FROM written WHERE name = $1', [name])).rows,
      send: (tx, sql) => tx.query(sql),
    }),
    ends: { 'a query object': (tx: PgTx) => tx.query({ text: 'COMMIT' }) },
    close: () => pool.end(),
  };
}

const postgresJs: Library = {
  name: 'postgres.js',
  open: {
    postgres(url, max) {
      const sql = postgres(url, { max, onnotice: () => undefined });
      return {
        client: sql,
        transaction: toTransaction<TransactionSql>({
          insert: (tx, table, name) => tx`INSERT INTO ${tx(table)} (name) VALUES (${name})`,
          read: (name) => sql`SELECT name FROM written WHERE name = ${name}`,
          send: (tx, text) => tx.unsafe(text),
        }),
        leave: (tx: TransactionSql) => tx.savepoint((inner) => inner.unsafe('SELECT * FROM not_there')),
        nest: (tx: TransactionSql, work) => tx.savepoint((inner) => work(inner as never)),
        close: () => sql.end(),
      };
    },
  },
};

const mysql2: Library = {
  name: 'mysql2',
  open: {
    mysql(url, max) {
      const pool = createPool({ uri: url, connectionLimit: max });
      return {
        client: pool,
        transaction: toTransaction<MysqlTx>({
          insert: (tx, table, name) => tx.execute(`INSERT INTO ${table} (name) VALUES (?)`, [name]),
          read: async (name) => {
            const [rows] = await pool.query('SELECT name FROM written WHERE name = ?', [name]);
            return rows as unknown[];
          },
          send: (tx, sql) => tx.query(sql),
        }),
        ends: {
          commit: (tx: PoolConnection) => tx.commit(),
          rollback: (tx: PoolConnection) => tx.rollback(),
          'a query object': (tx: PoolConnection) => tx.query({ sql: 'COMMIT' }),
        },
        close: () => pool.end(),
      };
    },
  },
};

const betterSqlite3: Library = {
  name: 'better-sqlite3',
  open: {
    sqlite(url) {
      const file = openFile(url);
      return {
        client: file,
        close: () => {
          file.close();
        },
      };
    },
  },
};

export const drivers: readonly Library[] = [pg, neon, postgresJs, mysql2, betterSqlite3];
