import { isIPv4, isIPv6 } from 'node:net';

/**
 * Returns the URL at which this machine reaches a server that listens at `host`. Nothing connects to 0.0.0.0 or ::, so
 * the loopback address takes their place.
 */
export function baseUrlAt(host: string, port: number, scheme: 'http' | 'https' = 'http'): string {
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return `${scheme}://${isIPv6(reachable) ? `[${reachable}]` : reachable}:${port}`;
}

/** Whether only this machine reaches `host`, an address or the host name of a URL. */
export function isLoopback(host: string): boolean {
  // `127.example.com` is a public host: check the address, not the prefix.
  return host === 'localhost' || host === '::1' || host === '[::1]' || (isIPv4(host) && host.startsWith('127.'));
}
