import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

interface CommitLoser {
  readonly port: number;
  /** How many commits were lost. */
  lost(): number;
  close(): Promise<void>;
}

/** A proxy that cuts the connections of the first commits: before the server gets them, or after it has replied to them. */
export async function startCommitLoser(target: number, times: number, lose: 'request' | 'reply'): Promise<CommitLoser> {
  let lost = 0;
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(target, '127.0.0.1');
    const cut = (): void => {
      client.destroy();
      upstream.destroy();
    };
    for (const each of [client, upstream]) {
      sockets.add(each);
      each.on('error', cut).on('close', cut);
    }
    client.on('data', (bytes) => {
      const isDoomed = lost < times && bytes.includes('commitTransaction');
      if (isDoomed) lost += 1;
      if (isDoomed && lose === 'request') {
        cut();
        return;
      }
      if (isDoomed) upstream.removeAllListeners('data').once('data', cut);
      upstream.write(bytes);
    });
    upstream.on('data', (bytes) => client.write(bytes));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    lost: () => lost,
    async close() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  };
}
