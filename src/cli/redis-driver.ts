import { redisStore, type IoredisClient, type NodeRedisClient, type RedisStoreOptions } from '../stores/redis.js';
import { driverTimeoutMs, loadDriver, type OpenStore } from './drivers.js';

interface Connectable {
  on(event: 'error', listener: (error: unknown) => void): unknown;
  connect(): Promise<unknown>;
}

type Ioredis = IoredisClient & Connectable & { readonly options: object; disconnect(): void };

/** What is used of ioredis and iovalkey. */
interface IoredisDriver {
  readonly Redis: new (url: string, options: object) => Ioredis;
  readonly Cluster: new (nodes: object[], options: object) => Ioredis;
}

type NodeRedis = NodeRedisClient & Connectable & { destroy(): void };

/** What is used of node-redis. */
interface NodeRedisDriver {
  readonly createClient: (options: object) => NodeRedis & {
    readonly options: object;
    sendCommand(args: string[]): Promise<unknown>;
  };
  readonly createCluster: (options: object) => NodeRedis;
}

interface Connection {
  readonly client: (IoredisClient | NodeRedisClient) & Connectable;
  readonly close: () => void;
}

/** A connection to one server, which may be a node of a Cluster. */
interface NodeConnection extends Connection {
  /** Sends CLUSTER INFO. */
  readonly clusterInfo: () => Promise<unknown>;
  readonly toCluster: () => Connection;
}

/**
 * Returns what connects to Redis with the app's own client: to the server of the URL, or to the Cluster of which it is a
 * node. Throws UsageError if the app has no client.
 */
export function openRedis(url: string, options: RedisStoreOptions): () => Promise<OpenStore> {
  const { name, driver } = loadDriver(['ioredis', 'iovalkey', 'redis']);
  return async () => {
    const node =
      name === 'redis' ? makeNodeRedis(driver as NodeRedisDriver, url) : makeIoredis(driver as IoredisDriver, url);
    // Only a node of a Cluster replies to CLUSTER INFO, and only to a user who may ask.
    const isOfCluster = async (): Promise<boolean> => {
      await connect(node);
      return node.clusterInfo().then(
        () => true,
        () => false,
      );
    };
    let connection: Connection = node;
    if (await settleOrClose(isOfCluster(), node)) {
      // A single client would be redirected for the keys of other nodes, and does not follow.
      node.close();
      connection = node.toCluster();
      await settleOrClose(connect(connection), connection);
    }
    return { store: redisStore(connection.client, options), close: connection.close };
  };
}

function makeIoredis({ Redis, Cluster }: IoredisDriver, url: string): NodeConnection {
  const client = new Redis(url, { lazyConnect: true, retryStrategy: () => null });
  const connection = (of: Ioredis): Connection => ({
    client: of,
    close: () => {
      of.disconnect();
    },
  });
  return {
    ...connection(client),
    clusterInfo: () => client.call('cluster', 'info'),
    toCluster: () => {
      const { host, port, username, password, tls } = client.options as Record<string, unknown>;
      const cluster = new Cluster([{ host, port }], {
        lazyConnect: true,
        clusterRetryStrategy: () => null,
        slotsRefreshTimeout: driverTimeoutMs,
        // By default the client connects to addresses, and a certificate may hold names only.
        dnsLookup: (name: string, done: (error: null, address: string) => void) => {
          done(null, name);
        },
        redisOptions: { username, password, tls },
      });
      return connection(cluster);
    },
  };
}

function makeNodeRedis({ createClient, createCluster }: NodeRedisDriver, url: string): NodeConnection {
  // Without `socketTimeout` a connection that only the Cluster client knows of would keep the process alive.
  const client = createClient({ url, socket: { reconnectStrategy: false, socketTimeout: driverTimeoutMs } });
  const connection = (of: NodeRedis): Connection => ({
    client: of,
    close: () => {
      try {
        of.destroy();
      } catch {
        // It is closed already.
      }
    },
  });
  return {
    ...connection(client),
    clusterInfo: () => client.sendCommand(['CLUSTER', 'INFO']),
    toCluster: () => {
      const { username, password, socket } = client.options as Record<string, unknown>;
      return connection(createCluster({ rootNodes: [{ url }], defaults: { username, password, socket } }));
    },
  };
}

async function connect({ client }: Connection): Promise<void> {
  let reason: unknown;
  // `connect` of ioredis rejects with «Connection is closed», and the listener gets the reason.
  client.on('error', (error) => {
    reason ??= (error as { lastNodeError?: unknown }).lastNodeError ?? error;
  });
  try {
    await client.connect();
  } catch (error) {
    throw reason ?? error;
  }
}

/** Settles as `reply` does, or rejects if that takes longer than `driverTimeoutMs`. Closes the connection if it rejects. */
async function settleOrClose<T>(reply: Promise<T>, { close }: Connection): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      reject(new Error(`Redis did not reply within ${driverTimeoutMs} ms.`));
    }, driverTimeoutMs);
  });
  try {
    return await Promise.race([reply, late]);
  } catch (error) {
    close();
    throw error;
  } finally {
    clearTimeout(timer);
  }
}
