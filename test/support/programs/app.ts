import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Returns the options that `forkApp` has started this process with. */
export function readAppOptions(): unknown {
  return JSON.parse(process.env.APP_OPTIONS ?? '{}');
}

/** Serves in a child process. Sends the port to its parent, and ends with it. */
export async function serveAsApp(listener: RequestListener, port: number): Promise<void> {
  const server = createServer(listener).listen(port, '127.0.0.1');
  await once(server, 'listening');
  process.on('disconnect', () => process.exit());
  process.send?.((server.address() as AddressInfo).port);
}
