import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/**
 * A proxy before a server on the loopback. It loses requests and replies as a broken network does, or connects to
 * another server.
 */
export interface LossyProxy {
  readonly port: number;
  /**
   * Drops the next requests that contain `text`, or the replies to them, and cuts their connections. `times` is 1 by
   * default.
   */
  lose(what: 'request' | 'reply', text: string, times?: number): void;
  /** Reads everything from now on and passes on nothing. Leaves all connections open. */
  fallSilent(): void;
  /** Stops reading from the connections that are open. New ones work. */
  freeze(): void;
  /** Connects new clients to the server on this port. Open connections stay where they are. */
  pointTo(port: number): void;
  /** The number of requests or replies that were lost. */
  lost(): number;
  /** The number of messages that clients have sent after a reply: what is sent together counts once. */
  roundTrips(): number;
  close(): Promise<void>;
}

/** Starts a server on the loopback that connects each client to a target. `join` passes on what they send. */
export async function startProxy(findTarget: () => number, join: (client: Socket, upstream: Socket) => void) {
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(findTarget(), '127.0.0.1');
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => sockets.delete(socket));
    }
    join(client, upstream);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    sockets,
    close: async (): Promise<void> => {
      const closed = once(server, 'close');
      server.close();
      // A client that is still connected would keep the server from closing.
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

export async function startLossyProxy(port: number): Promise<LossyProxy> {
  let targetPort = port;
  let doomed = { what: 'reply', text: '', times: 0 };
  let lost = 0;
  let roundTrips = 0;
  let isSilent = false;
  const proxy = await startProxy(
    () => targetPort,
    (client, upstream) => {
      let swallow = false;
      let isAwaitingReply = false;
      const cut = (): void => {
        lost += 1;
        client.destroy();
        upstream.destroy();
      };
      client.on('data', (bytes) => {
        if (!isAwaitingReply) roundTrips += 1;
        isAwaitingReply = true;
        if (isSilent) return;
        if (doomed.times > 0 && bytes.includes(doomed.text)) {
          doomed.times -= 1;
          if (doomed.what === 'request') {
            cut();
            return;
          }
          swallow = true;
        }
        upstream.write(bytes);
      });
      upstream.on('data', (bytes) => {
        isAwaitingReply = false;
        if (swallow) cut();
        else client.write(bytes);
      });
      client.on('close', () => upstream.destroy());
      upstream.on('close', () => client.destroy());
    },
  );
  return {
    port: proxy.port,
    close: proxy.close,
    lose: (what, text, times = 1) => {
      doomed = { what, text, times };
    },
    fallSilent: () => {
      isSilent = true;
    },
    freeze: () => {
      for (const socket of proxy.sockets) socket.pause();
    },
    pointTo: (otherPort) => {
      targetPort = otherPort;
    },
    lost: () => lost,
    roundTrips: () => roundTrips,
  };
}
