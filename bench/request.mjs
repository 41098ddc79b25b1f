// A request of the service, serialised once; before each sending a new id is patched into it.
import { randomBytes } from 'node:crypto';
import { callbackText, path } from './callback.mjs';

const digits = 12;
const mark = '0'.repeat(digits);
const run = randomBytes(12).toString('hex');
let sent = 0;

/** The request, and where in it the digits stand that make it unlike any other. */
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
