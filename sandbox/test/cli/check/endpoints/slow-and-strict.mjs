// A right endpoint that takes its time. It knows a payout by the service's id and its amount, and refuses whatever is
// not documented.
//
// Verdict by reading: every row is right, also with --strict. Nothing can be seen unless --prepare gets the id and the
// amount.
import { appendFileSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';

const { LEDGER, PAYOUTS, TOKEN } = process.env;
const bookingMs = 700;
const refusalMs = 50;

/** By id, the facts that were booked. */
const booked = new Map();
const busy = new Set();

const isText = (value) => typeof value === 'string';
const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
const statuses = { 'transfer.success': 'SUCCESS', 'transfer.failed': 'FAILED' };

function isDocumented(callback) {
  if (!isObject(callback) || !isObject(callback.data)) return false;
  const { event, data } = callback;
  const { id, status, paymentMethod, walletNumber, bankAccount, failureReason } = data;
  return (
    ['id', 'externalId', 'reference', 'currency', 'provider', 'externalReference', 'vouchercode', 'timestamp'].every(
      (name) => isText(data[name]),
    ) &&
    /^[^\p{Cc}]{1,255}$/u.test(id) &&
    isText(event) &&
    status === statuses[event] &&
    typeof data.amount === 'number' &&
    !Number.isNaN(Date.parse(data.timestamp)) &&
    (status === 'SUCCESS' ? failureReason === null : isText(failureReason)) &&
    ((paymentMethod === 'mobile_money' && isText(walletNumber) && bankAccount === null) ||
      (paymentMethod === 'bank' && walletNumber === null && isObject(bankAccount)))
  );
}

/** Each line of the payouts is an id, an amount and a currency. */
const isKnown = ({ id, amount, currency }) =>
  readFileSync(PAYOUTS, 'utf8').split('\n').includes(`${id} ${amount} ${currency}`);

async function handle({ data }) {
  const { id, externalId, status, amount, currency } = data;
  const facts = JSON.stringify([externalId, status, amount, currency]);
  if (booked.has(id)) return booked.get(id) === facts ? 200 : 422;
  if (!isKnown(data)) return 404;
  if (busy.has(id)) return 409;
  busy.add(id);
  await pause(bookingMs);
  appendFileSync(LEDGER, `${externalId} ${status === 'SUCCESS' ? 'paid' : 'refund'}\n`);
  booked.set(id, facts);
  busy.delete(id);
  return 200;
}

async function respond(request) {
  let body = '';
  for await (const chunk of request.setEncoding('utf8')) body += chunk;
  if (request.headers['x-token'] !== TOKEN) return 401;
  if (request.headers['content-type'] !== 'application/json') return 415;
  const callback = JSON.parse(body);
  return isDocumented(callback) ? handle(callback) : 400;
}

const server = createServer((request, response) => {
  respond(request)
    .catch(() => 400)
    .then(async (status) => {
      if (status >= 400) await pause(refusalMs);
      response.writeHead(status).end();
    });
});
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
