// What every program of the benchmark has: the package, and the callback that it receives.
import { randomBytes } from 'node:crypto';

/** The package as it was built; `PACKAGE` names another build, to compare two. */
export const packageUnderTest = await import(process.env.PACKAGE ?? '../dist/index.js');

/** Where every server responds. The last segment is the secret of the package's `urlToken`. */
export const secret = 'a-secret-of-the-benchmark';
export const path = `/callbacks/transfers/${secret}`;

/** The callback of service §2.1 for a mobile money transfer, as it comes over the wire. */
export function callbackText(id) {
  return JSON.stringify({
    event: 'transfer.success',
    data: {
      id,
      externalId: `payout-${id}`,
      reference: 'REF-20260115-000123',
      status: 'SUCCESS',
      amount: 15_000,
      currency: 'XAF',
      paymentMethod: 'mobile_money',
      walletNumber: '237670000000',
      bankAccount: null,
      provider: 'MTN',
      failureReason: null,
      timestamp: '2026-01-15T10:30:00.000Z',
      externalReference: 'PRV-000123456',
      vouchercode: '',
    },
  });
}

const digits = 12;
const mark = '0'.repeat(digits);
const run = randomBytes(12).toString('hex');
let sent = 0;

/** A request of the service, serialised once, and where in it the digits stand that make it unlike any other. */
export function newRequest(port) {
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

/** Gives the request an id that was never sent before. */
export function makeUnique({ bytes, places }) {
  for (let place = digits - 1, rest = ++sent; place >= 0; place -= 1, rest = Math.floor(rest / 10)) {
    for (const at of places) bytes[at + place] = 48 + (rest % 10);
  }
}
