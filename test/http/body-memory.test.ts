import { connect, type Socket } from 'node:net';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { httpServers } from '../support/servers/http-servers.js';
import { head } from '../support/helpers/sockets.js';
import { json, startRecording } from './support.js';
import { listen } from '../support/helpers/listen.js';
import { collectGarbage } from '../support/helpers/runtime.js';

function usedBytes(): number {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

const before = usedBytes();

// Parsing 300 000 chunks takes as long as the machine is busy.
const patience = { timeout: 250_000, interval: 100 };

/** Returns the sockets of the requests that arrive at servers of this process during the running test. */
function watchRequests(): Socket[] {
  const sockets: Socket[] = [];
  const note = (message: unknown): void => {
    sockets.push((message as { socket: Socket }).socket);
  };
  listen('http.server.request.start', note);
  return sockets;
}

describe.each(httpServers)('on $name', (server) => {
  test('bodies that arrive in single bytes take little more memory than their bytes', async () => {
    const { url } = await startRecording(server);
    const chunks = '1\r\n \r\n'.repeat(100_000);
    const request = Buffer.from(head(url, { ...json, 'Transfer-Encoding': 'chunked' }) + chunks);
    const sockets = watchRequests();
    for (let sender = 0; sender < 3; sender += 1) {
      const socket = connect(Number(new URL(url).port), '127.0.0.1');
      onTestFinished(() => void socket.destroy());
      socket.on('error', () => undefined).write(request);
    }
    await vi.waitFor(() => {
      expect(sockets.map(({ bytesRead }) => bytesRead)).toEqual([request.length, request.length, request.length]);
    }, patience);
    // As a list of 300 000 buffers they take over 50 MB, until the senders go on.
    await vi.waitFor(() => {
      expect(usedBytes() - before).toBeLessThan(10_000_000);
    }, patience);
  }, 600_000);
});
