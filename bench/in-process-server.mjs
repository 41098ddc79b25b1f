// One server of in-process.mjs, with its load: 32 connections that begin and end in this process. In each turn of the
// event loop every connection sends one request, so that the turn itself, 8 µs, is shared by 32.
import { Duplex } from 'node:stream';
import { makeUnique, newRequest } from './callback.mjs';
import { served } from './servers/serve.mjs';

const ok = Buffer.from('HTTP/1.1 200 ');
let withoutResponse = 0;
let onAllResponded = () => undefined;

class Connection extends Duplex {
  request = newRequest(80);
  send() {
    makeUnique(this.request);
    this.push(Buffer.from(this.request.bytes));
  }
  _read() {}
  _write(chunk, _encoding, done) {
    done();
    if (chunk[0] !== ok[0]) return; // The body, where it is written apart from the head.
    if (ok.compare(chunk, 0, ok.length, 0, ok.length) !== 0) {
      // Thrown here, an error would reach the server under test, which may swallow it.
      console.error(`Not a 200: ${chunk.toString()}`);
      process.exit(1);
    }
    withoutResponse -= 1;
    if (withoutResponse === 0) onAllResponded();
  }
  // node:http calls it on every socket.
  setTimeout() {}
}

await import(`./servers/${process.env.IN_PROCESS}`);
const [server] = served;
const connections = Array.from({ length: 32 }, () => new Connection());
for (const connection of connections) server.emit('connection', connection);

/** Sends this many fresh callbacks. Resolves with the microseconds of processor time for each. */
async function send(count) {
  const turns = Math.ceil(count / connections.length);
  const before = process.cpuUsage();
  for (let turn = 0; turn < turns; turn += 1) {
    withoutResponse = connections.length;
    const allResponded = new Promise((resolve) => {
      onAllResponded = resolve;
    });
    for (const connection of connections) connection.send();
    await allResponded;
    await new Promise(setImmediate);
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / (turns * connections.length);
}

process.on('message', async ({ count }) => {
  process.send(await send(count));
});
process.on('disconnect', () => process.exit());
process.send('ready');
