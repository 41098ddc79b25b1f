import { once } from 'node:events';
import { connect, createServer, type AddressInfo } from 'node:net';

/** Stands before a server on the loopback. Loses replies as a broken network does, or leads to another server. */
export interface LossyProxy {
  readonly port: number;
  /** The reply to the next request that contains `text` is swallowed, and its connection cut. */
  loseReplyTo(text: string): void;
  /** From now on it takes everything and passes on nothing, with every connection left open. */
  fallSilent(): void;
  /** Connects new clients to the server on this port. Connections that are open stay where they are. */
  pointTo(port: number): void;
  /** How many replies were lost. */
  lost(): number;
  close(): Promise<void>;
}

export async function startLossyProxy(port: number): Promise<LossyProxy> {
  let targetPort = port;
  let doomed: string | undefined;
  let lost = 0;
  let silent = false;
  const server = createServer((client) => {
    const upstream = connect(targetPort, '127.0.0.1');
    let swallow = false;
    client.on('data', (bytes) => {
      if (silent) return;
      if (doomed !== undefined && bytes.includes(doomed)) {
        doomed = undefined;
        swallow = true;
      }
      upstream.write(bytes);
    });
    upstream.on('data', (bytes) => {
      if (!swallow) {
        client.write(bytes);
        return;
      }
      lost += 1;
      client.destroy();
      upstream.destroy();
    });
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      one.on('error', () => undefined);
      one.on('close', () => other.destroy());
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    loseReplyTo: (text) => {
      doomed = text;
    },
    fallSilent: () => {
      silent = true;
    },
    pointTo: (otherPort) => {
      targetPort = otherPort;
    },
    lost: () => lost,
    async close() {
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
