// The least that a listener can do: it reads, validates with the schema of the package, remembers in a Map and runs a handler.
import { packageUnderTest } from '../package.mjs';
import { handle } from './handler.mjs';
import { serve } from './serve.mjs';

const { transferCallbackSchema } = packageUnderTest;
const remembered = new Map();

async function receive(callback) {
  const { data } = transferCallbackSchema.parse(callback);
  if (remembered.has(data.id)) return;
  remembered.set(data.id, 'claimed');
  await handle(data);
  remembered.set(data.id, 'handled');
}

serve((request, response) => {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', async () => {
    await receive(JSON.parse(Buffer.concat(chunks).toString()));
    response.writeHead(200, { 'Content-Type': 'text/plain', 'Content-Length': 2 }).end('OK');
  });
});
