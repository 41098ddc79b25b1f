import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * A port of the loopback that is free now. It lies below those that systems hand out for outgoing connections: one of
 * those could be taken while a server is down, if only by the very client that is trying to reach it again. The bus of
 * a Redis cluster listens 10 000 higher, below them too.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(10_000, 20_000);
    const probe = createServer().listen(port, '127.0.0.1');
    try {
      await once(probe, 'listening');
    } catch {
      continue; // Taken: another one.
    }
    probe.close();
    await once(probe, 'close');
    return port;
  }
}
