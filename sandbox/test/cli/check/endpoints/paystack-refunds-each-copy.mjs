// The essence of a public handler of Paystack transfers: a switch on the event, errors of the database are caught, unknown events
// and unknown payouts get 200. A success sets a state, and a failure pays back each time.
//
// Verdict by reading: each copy of a failure is refunded again, and a reversal is acknowledged and lost. Unknown states and
// bodies that are no callback are acknowledged. Copies of a success do no harm, and a stranger is refused.
import { createHmac } from 'node:crypto';
import { appendFileSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';

const { LEDGER, PAYOUTS, PAYSTACK_SECRET_KEY: secret = '' } = process.env;
const completed = new Set();
const isKnown = (reference) => readFileSync(PAYOUTS, 'utf8').split('\n').includes(reference);

function handle({ event, data }) {
  switch (event) {
    case 'transfer.success':
      if (!isKnown(data.reference) || completed.has(data.reference)) break;
      completed.add(data.reference);
      appendFileSync(LEDGER, `${data.reference} SUCCESS\n`);
      break;
    case 'transfer.failed':
      if (isKnown(data.reference)) appendFileSync(LEDGER, `${data.reference} FAILED\n`);
      break;
    default:
  }
}

const server = createServer(async (request, response) => {
  let body = '';
  for await (const chunk of request.setEncoding('utf8')) body += chunk;
  const signature = createHmac('sha512', secret).update(body).digest('hex');
  if (request.headers['x-paystack-signature'] !== signature) return response.writeHead(401).end();
  try {
    handle(JSON.parse(body));
    return response.writeHead(200).end('{"received":true}');
  } catch {
    return response.writeHead(500).end();
  }
});
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
