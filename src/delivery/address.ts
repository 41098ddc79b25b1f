import { isIPv6 } from 'node:net';

/** The URL at which this machine reaches a server that listens at `host`: 0.0.0.0 and :: are no addresses to connect to. */
export function baseUrlAt(host: string, port: number, scheme: 'http' | 'https' = 'http'): string {
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return `${scheme}://${isIPv6(reachable) ? `[${reachable}]` : reachable}:${port}`;
}
