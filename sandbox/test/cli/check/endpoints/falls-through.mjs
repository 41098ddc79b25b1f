// Books each callback once. But a `break` is missing: a failure is refunded, and then also booked as paid.
//
// Verdict by reading: every row of a failure is wrong. The rows of successes are right.
import { appendFileSync } from 'node:fs';
import { createServer } from 'node:http';

const { LEDGER } = process.env;
const seen = new Set();
const statuses = { 'transfer.success': 'SUCCESS', 'transfer.failed': 'FAILED' };

function handle({ event, data }) {
  const { id, externalId, status } = data;
  if (typeof id !== 'string' || typeof externalId !== 'string') return 400;
  if (status === undefined || status !== statuses[event]) return 400;
  if (seen.has(id)) return 200;
  seen.add(id);
  switch (event) {
    case 'transfer.failed':
      appendFileSync(LEDGER, `${externalId} refund\n`);
    // Falls through.
    case 'transfer.success':
      appendFileSync(LEDGER, `${externalId} paid\n`);
  }
  return 200;
}

const server = createServer(async (request, response) => {
  let body = '';
  for await (const chunk of request.setEncoding('utf8')) body += chunk;
  let status = 400;
  try {
    status = handle(JSON.parse(body));
  } catch {
    // It is not a callback.
  }
  response.writeHead(status).end();
});
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
