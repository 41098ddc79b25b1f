// What there is to compare with: a route that does nothing, in Express and on node:http alone, and the floor, the least that a
// listener can do. It reads, validates with the schema of the package, remembers in a Map and runs a handler.
import express from 'express';
import { packageUnderTest, path } from '../callback.mjs';
import { handle, serve } from './serve.mjs';

const { transferCallbackSchema } = packageUnderTest;
const remembered = new Map();

async function receive(callback) {
  const { data } = transferCallbackSchema.parse(callback);
  if (remembered.has(data.id)) return;
  remembered.set(data.id, 'claimed');
  await handle(data);
  remembered.set(data.id, 'handled');
}

/** Returns a listener that gives the parsed callback to `work`. */
const listen = (work) => (request, response) => {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    const respond = () => response.writeHead(200, { 'Content-Type': 'text/plain', 'Content-Length': 2 }).end('OK');
    const done = work(JSON.parse(Buffer.concat(chunks).toString()));
    // The empty listener waits for no promise.
    if (done === undefined) respond();
    else done.then(respond);
  });
};

const [, , kind] = process.argv;
if (kind === 'express') {
  const app = express();
  app.use(express.json());
  app.post(path, (_request, response) => {
    response.sendStatus(200);
  });
  serve(app);
} else {
  serve(listen(kind === 'floor' ? receive : () => undefined));
}
