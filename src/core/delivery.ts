import { hostname } from 'node:os';

/** When and where a delivery came in, as its name tells. */
export interface DeliveryOrigin {
  readonly at: Date;
  readonly host: string;
  readonly pid: number;
}

/**
 * Returns a function that names deliveries: time, host, process and number, such as
 * `2026-10-05T02:58:12.113Z/payouts-7f9c/41/k3x9q2h1-17`. The name is also the token of the delivery's claim, and so it is
 * what a person finds in the store. It has no space: the Redis store separates its fields by spaces.
 */
export function deliveryNames(): () => string {
  const host = hostname().replace(/[^\w.-]/g, '_');
  // Two processes may have one host name and one pid, in two containers.
  const random = crypto.getRandomValues(new Uint32Array(2)).reduce((text, part) => text + part.toString(36), '');
  const origin = `/${host}/${process.pid}/${random}-`;
  let count = 0;
  let atMs = NaN;
  let prefix = '';
  return () => {
    const nowMs = Date.now();
    if (nowMs !== atMs) {
      atMs = nowMs;
      prefix = new Date(nowMs).toISOString() + origin;
    }
    count += 1;
    return prefix + String(count);
  };
}

/** Returns the name of the delivery that made the claim. A second claim of `…-17` has the token `…-17.2`. */
export function toDeliveryName(token: string): string {
  return token.replace(/(-\d+)\.\d+$/, '$1');
}

/** Reads a name that `deliveryNames` has made. Returns `undefined` for any other text. */
export function readDelivery(name: string): DeliveryOrigin | undefined {
  const [time = '', host = '', pid = '', last = ''] = name.split('/');
  const at = new Date(time);
  if (Number.isNaN(at.getTime()) || !/^\d+$/.test(pid) || host === '' || last === '') return undefined;
  return { at, host, pid: Number(pid) };
}
