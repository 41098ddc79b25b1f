// The load: one process, driven by run.mjs. Raw sockets and requests serialised beforehand, so that it costs a fraction
// of what the servers cost; every request carries an id that was never sent before.
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { callbackText, path } from './callback.mjs';

const ok = Buffer.from('HTTP/1.1 200 ');
const digits = 12;
const mark = '0'.repeat(digits);
const run = randomBytes(12).toString('hex');
let sent = 0;

/** The request, and where in it the digits stand that make it unlike any other. */
function newRequest(port) {
  const body = callbackText(`${run}${mark}`);
  const head = [
    `POST ${path} HTTP/1.1`,
    `Host: 127.0.0.1:${port}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: keep-alive',
  ];
  const bytes = Buffer.from([...head, '', body].join('\r\n'));
  const places = [];
  for (let at = bytes.indexOf(mark); at !== -1; at = bytes.indexOf(mark, at + digits)) places.push(at);
  return { bytes, places };
}

function makeUnique({ bytes, places }) {
  for (let place = digits - 1, rest = ++sent; place >= 0; place -= 1, rest = Math.floor(rest / 10)) {
    for (const at of places) bytes[at + place] = 48 + (rest % 10);
  }
}

/** The whole length of the answer that `bytes` begin, or undefined when its head is not complete. */
function lengthOf(bytes) {
  const headLength = bytes.indexOf('\r\n\r\n') + 4;
  if (headLength === 3) return undefined;
  const contentLength = /\r\ncontent-length: *(\d+)/i.exec(bytes.toString('latin1', 0, headLength))?.[1];
  if (contentLength === undefined) throw new Error('An answer without Content-Length.');
  return headLength + Number(contentLength);
}

/** Keeps one request in flight on each of `connections` for `durationMs`; anything but a 200 is an error. */
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
          let answerLength; // The answers of one server are all of one length: only the first is parsed.
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
            if (answerLength === undefined) {
              beginning = Buffer.concat([beginning, chunk]);
              answerLength = lengthOf(beginning);
            }
            if (answerLength === undefined || received < answerLength) return;
            if (received > answerLength) reject(new Error('An answer longer than the ones before.'));
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
