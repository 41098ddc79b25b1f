// The essence of a public handler of Flutterwave withdrawals: it finds the withdrawal by the id of the service, and books. Errors
// of the database are caught, and everything else gets 200.
//
// Verdict by reading: each copy is booked again, of a success and of a failure. Unknown states and bodies that are no callback
// are acknowledged. A stranger is refused.
import { appendFileSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';

const { LEDGER, PAYOUTS, FLUTTERWAVE_SECRET_HASH: secret } = process.env;

/** A withdrawal is a line of two words: the id of the service, and the app's own reference. */
function findReference(id) {
  const lines = readFileSync(PAYOUTS, 'utf8').split('\n');
  return lines.map((line) => line.split(' ')).find(([known]) => known === String(id))?.[1];
}

function handle({ event, data }) {
  if (event !== 'transfer.completed') return;
  const reference = findReference(data.id);
  if (reference === undefined) return;
  if (data.status === 'SUCCESSFUL') appendFileSync(LEDGER, `${reference} SUCCESS\n`);
  if (data.status === 'FAILED') appendFileSync(LEDGER, `${reference} FAILED\n`);
}

const server = createServer(async (request, response) => {
  let body = '';
  for await (const chunk of request.setEncoding('utf8')) body += chunk;
  if (request.headers['verif-hash'] !== secret) return response.writeHead(401).end();
  try {
    handle(JSON.parse(body));
    return response.writeHead(200).end('{"status":"success"}');
  } catch {
    return response.writeHead(500).end();
  }
});
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
