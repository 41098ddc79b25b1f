import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';

// Each worker of Vitest has its own ports: a file must not take a port whose server another file is restarting.
const portsPerWorker = 1_250;
const workers = 8;
const firstPort = 10_000 + (Number(process.env.VITEST_POOL_ID ?? 0) % workers) * portsPerWorker;
const given = new Set<number>();

/**
 * Finds a port of the loopback that is free. Each call finds another one. They lie below the ports that systems give to
 * outgoing connections: one of those could be taken while a server is down, even by the client that tries to reach the
 * server again. The bus of a Redis cluster listens 10 000 higher, below them too.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(firstPort, firstPort + portsPerWorker);
    if (given.has(port)) continue;
    const probe = createServer().listen(port, '127.0.0.1');
    try {
      await once(probe, 'listening');
    } catch {
      continue; // The port is taken: try another one.
    }
    probe.close();
    await once(probe, 'close');
    given.add(port);
    return port;
  }
}

/** Whether a server accepts connections on this port of the loopback. */
export async function isListening(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
