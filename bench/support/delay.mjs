// A TCP proxy that keeps what it gets for a quarter of a millisecond in each direction, as a network does: PORT, then the target's.
import { createServer, connect } from 'node:net';

const [, , target] = process.argv;
const still = new Int32Array(new SharedArrayBuffer(4));
let waiting = [];

function flush() {
  // A timer of Node would wait for at least 1 ms.
  Atomics.wait(still, 0, 0, 0.25);
  const due = waiting;
  waiting = [];
  for (const [socket, chunk] of due) socket.write(chunk);
}

function pass(from, to) {
  from.on('data', (chunk) => {
    // What other sockets have received in this turn of the loop waits together with it.
    if (waiting.push([to, chunk]) === 1) setImmediate(flush);
  });
  from.on('close', () => to.destroy());
  from.on('error', () => to.destroy());
}

const server = createServer({ noDelay: true }, (client) => {
  const upstream = connect({ port: Number(target), host: '127.0.0.1', noDelay: true });
  pass(client, upstream);
  pass(upstream, client);
});
server.listen(0, '127.0.0.1', () => process.send(server.address().port));
