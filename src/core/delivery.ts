import { hostname } from 'node:os';

/** The time and the process of a delivery's arrival, as parsed from its name. */
export interface DeliveryOrigin {
  readonly at: Date;
  readonly host: string;
  readonly pid: number;
}

/**
 * Returns a function that names deliveries: time, host, process and number, such as
 * `2026-10-05T02:58:12.113Z/payouts-7f9c/41/k3x9q2h1-17`. The name is also the token of the delivery's claim, so that
 * people find it in the store. It contains no space, because the Redis store separates its fields by spaces.
 */
export function deliveryNames(hostName = hostname()): () => string {
  const host = hostName.replace(/[^\w.-]/g, '_');
  // Processes in two containers may have the same host name and pid.
  const random = crypto.getRandomValues(new Uint32Array(2)).reduce((text, part) => text + part.toString(36), '');
  const origin = `/${host}/${process.pid}/${random}-`;
  let count = 0;
  let atMs = NaN;
  // Stryker disable next-line StringLiteral: Equal: the first name replaces it, because no time equals NaN.
  let prefix = '';
  return () => {
    const nowMs = Date.now();
    // Stryker disable next-line ConditionalExpression: Equal: only faster.
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

/** Parses the name of a delivery. Returns `undefined` for a text of another form. */
export function readDelivery(name: string): DeliveryOrigin | undefined {
  const parts = /^(?<time>[^/]+)\/(?<host>[^/]+)\/(?<pid>\d+)\/[^/]+$/.exec(name)?.groups;
  if (parts === undefined) return undefined;
  const { time, host, pid } = parts as Record<'time' | 'host' | 'pid', string>;
  const at = new Date(time);
  return Number.isNaN(at.getTime()) ? undefined : { at, host, pid: Number(pid) };
}

/** Returns who holds a claim and since when, for people, as far as its token tells. */
export function describeHolder(token: string): { by?: string; since?: Date } {
  const origin = readDelivery(token);
  return origin === undefined ? {} : { by: `${origin.host}, process ${origin.pid}`, since: origin.at };
}
