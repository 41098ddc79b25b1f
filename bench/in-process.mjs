// What Node's HTTP and the code behind it cost, without sockets: the servers of run.mjs that need no database, each on
// one connection that ends in this process. Takes a minute, and is far steadier than run.mjs.
import { Duplex } from 'node:stream';
import { makeUnique, newRequest } from './request.mjs';
import { served } from './servers/serve.mjs';

const variants = [
  { name: 'express.json(), empty route', file: 'empty.mjs', kind: 'express' },
  { name: 'node:http, empty listener', file: 'empty.mjs', kind: 'node' },
  { name: 'router: memory', file: 'package.mjs', kind: 'router' },
  { name: 'listener: memory', file: 'package.mjs', kind: 'listener' },
];
const rounds = 15;
const turns = 3_000;

class Connection extends Duplex {
  answered = () => undefined;
  _read() {}
  _write(chunk, _encoding, done) {
    done();
    this.answered(chunk);
  }
  // What node:http asks of a socket.
  setTimeout() {}
}

/** Sends fresh callbacks one after the other; answers the microseconds for each. */
async function send({ connection, request }) {
  const startedAt = performance.now();
  for (let turn = 0; turn < turns; turn += 1) {
    makeUnique(request);
    const answer = new Promise((resolve) => {
      connection.answered = resolve;
    });
    connection.push(Buffer.from(request.bytes));
    const text = (await answer).toString('latin1', 0, 13);
    if (text !== 'HTTP/1.1 200 ') throw new Error(`Not a 200: ${text}`);
    await new Promise(setImmediate);
  }
  return (1_000 * (performance.now() - startedAt)) / turns;
}

const connections = [];
for (const { file, kind } of variants) {
  process.argv[2] = kind;
  await import(`./servers/${file}?${kind}`);
  const connection = new Connection();
  served.at(-1).emit('connection', connection);
  connections.push({ connection, request: newRequest(80) });
}
for (const each of connections) for (let warmUp = 0; warmUp < 7; warmUp += 1) await send(each);

const micros = connections.map(() => []);
for (let round = 0; round < rounds; round += 1) {
  for (const [i, each] of connections.entries()) micros[i].push(await send(each));
}
const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
console.log(`Node ${process.version}, medians of ${rounds} rounds`);
for (const [i, { name }] of variants.entries()) {
  const ratio = median(micros[i].map((own, round) => micros[0][round] / own));
  console.log(`${name.padEnd(30)}${median(micros[i]).toFixed(1).padStart(6)} µs  / empty Express ${ratio.toFixed(2)}`);
}
process.exit();
