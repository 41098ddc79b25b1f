import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

interface Message {
  readonly port?: number;
  readonly isHandling?: true;
  readonly run?: string;
  readonly outcome?: string;
}

interface TwoProcesses {
  readonly url: string;
  readonly close: () => Promise<void>;
}

/**
 * Starts an app of two processes that share a store on the disk. The first one is killed with SIGKILL within its handler;
 * from then on the second one is sent the requests. `note` is called with what becomes of the handlers and deliveries.
 */
export async function startTwoProcesses(note: (message: Message) => void): Promise<TwoProcesses> {
  const folder = await mkdtemp(join(tmpdir(), 'transfer-callbacks-demo-'));
  const file = join(folder, 'claims.db');
  // One after the other: the first one makes the table.
  const first = await startWorker(file, 'first');
  const second = await startWorker(file, 'second');
  let { port } = first;
  first.child.on('message', () => {
    first.child.kill('SIGKILL');
    port = second.port;
    note({ run: 'died' });
  });
  second.child.on('message', note);

  // In production this is the load balancer.
  const front = createServer((request, response) => {
    const { url: path, method, headers } = request;
    const passed = httpRequest({ host: '127.0.0.1', port, path, method, headers }, (received) => {
      response.writeHead(Number(received.statusCode), received.headers);
      received.pipe(response);
    });
    // The process is gone: the service gets no response.
    passed.on('error', () => response.destroy());
    request.pipe(passed);
  }).listen(0, '127.0.0.1');
  await once(front, 'listening');

  return {
    url: `http://127.0.0.1:${(front.address() as AddressInfo).port}/`,
    async close() {
      front.close();
      front.closeAllConnections();
      for (const { child } of [first, second]) {
        // All that it has sent is read before this event.
        const disconnected = child.connected ? once(child, 'disconnect') : undefined;
        child.kill('SIGKILL');
        await disconnected;
      }
      await rm(folder, { recursive: true });
    },
  };
}

async function startWorker(file: string, role: string): Promise<{ child: ChildProcess; port: number }> {
  const child = fork(fileURLToPath(new URL('./worker.ts', import.meta.url)), [file, role]);
  const [{ port = 0 }] = (await once(child, 'message')) as [Message];
  return { child, port };
}
