// The load: one process, driven by sockets.mjs. Raw sockets and requests serialised beforehand, so that it costs a fraction
// of what the servers cost; every request carries an id that was never sent before.
import { once } from 'node:events';
import { connect } from 'node:net';
import { makeUnique, newRequest } from './callback.mjs';

const ok = Buffer.from('HTTP/1.1 200 ');
/** The whole length of the response that `bytes` begin, or undefined when its head is not complete. */
function lengthOf(bytes) {
  const headLength = bytes.indexOf('\r\n\r\n') + 4;
  if (headLength === 3) return undefined;
  const contentLength = /\r\ncontent-length: *(\d+)/i.exec(bytes.toString('latin1', 0, headLength))?.[1];
  if (contentLength === undefined) throw new Error('A response without Content-Length.');
  return headLength + Number(contentLength);
}

/** Keeps one request in flight on each of `connections`. Anything but a 200 is an error. */
async function measure({ port, connections, durationMs }) {
  const sockets = await Promise.all(
    Array.from({ length: connections }, async () => {
      const socket = connect({ port, host: '127.0.0.1', noDelay: true });
      await once(socket, 'connect');
      return socket;
    }),
  );
  const latencies = [];
  const startedAt = performance.now();
  const endsAt = startedAt + durationMs;
  const cpuBefore = process.cpuUsage();

  await Promise.all(
    sockets.map(
      (socket) =>
        new Promise((resolve, reject) => {
          const request = newRequest(port);
          let sentAt;
          let responseLength; // The responses of one server are all of one length: only the first is parsed.
          let received = 0;
          let beginning = Buffer.alloc(0);

          function send() {
            makeUnique(request);
            sentAt = performance.now();
            socket.write(request.bytes);
          }
          function receive(chunk) {
            if (received === 0 && ok.compare(chunk, 0, ok.length) !== 0) {
              reject(new Error(`Not a 200: ${chunk.toString('latin1')}`));
              return;
            }
            received += chunk.length;
            if (responseLength === undefined) {
              beginning = Buffer.concat([beginning, chunk]);
              responseLength = lengthOf(beginning);
            }
            if (responseLength === undefined || received < responseLength) return;
            if (received > responseLength) reject(new Error('A response longer than the ones before.'));
            const now = performance.now();
            if (now > endsAt) {
              socket.destroy();
              resolve();
              return;
            }
            latencies.push(now - sentAt);
            received = 0;
            send();
          }
          socket.on('data', receive);
          socket.on('error', reject);
          socket.on('end', () => reject(new Error('The server closed a connection.')));
          send();
        }),
    ),
  );

  const { user, system } = process.cpuUsage(cpuBefore);
  const sorted = Float64Array.from(latencies).sort();
  return {
    count: sorted.length,
    perSecond: (1_000 * sorted.length) / durationMs,
    p50Ms: sorted[Math.floor(sorted.length * 0.5)],
    p99Ms: sorted[Math.floor(sorted.length * 0.99)],
    generatorBusy: (user + system) / 1_000 / (performance.now() - startedAt),
  };
}

process.on('message', async (task) => {
  process.send(await measure(task));
});
process.send('ready');
