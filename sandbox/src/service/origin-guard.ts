import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { isJson } from './http-messages.js';

/** Why a request is refused. */
interface Refusal {
  readonly status: 403 | 415 | 421;
  readonly message: string;
}

/**
 * Refuses a `Host` that a foreign web page could have. By DNS rebinding such a page reaches this machine under its
 * own host name, and the browser takes it for the same origin. An address cannot be rebound. `ownHost` is the `host`
 * option of the sandbox.
 */
export function refuseHost({ headers }: Pick<IncomingMessage, 'headers'>, ownHost: string): Refusal | undefined {
  const [, name = ''] = /^(\[[\da-f:.]+\]|[^:@/?#\s]+)(?::\d+)?$/i.exec(headers.host ?? '') ?? [];
  const host = name.toLowerCase();
  const isLocalName = host === 'localhost' || host.endsWith('.localhost') || host === ownHost.toLowerCase();
  if (isLocalName || isIP(host.replace(/^\[|\]$/g, '')) !== 0) return undefined;
  return { status: 421, message: 'The Host is neither an address, localhost nor the `host` of the sandbox.' };
}

/** Refuses what a browser fetches for the page of another origin. A link that leads to the console is followed. */
export function refuseReader({ headers }: IncomingMessage): Refusal | undefined {
  const { 'sec-fetch-site': site = 'none', 'sec-fetch-mode': mode } = headers;
  if (site === 'same-origin' || site === 'none' || mode === 'navigate') return undefined;
  return { status: 403, message: 'A page of another origin may not read the console.' };
}

/**
 * Refuses what a browser sends for the page of another origin. A browser names the page in Sec-Fetch-Site or, at an
 * address that is not loopback, in Origin alone. A request with neither header comes from no browser.
 */
export function refuseWriter(request: IncomingMessage): Refusal | undefined {
  const { 'sec-fetch-site': site, origin, host } = request.headers;
  const isOwn = site === undefined ? origin === undefined || hostIn(origin) === host : site === 'same-origin';
  if (!isOwn) return { status: 403, message: 'A page of another origin may not use the console.' };
  // A form of another page can send text/plain, but not JSON, without the browser asking first.
  if (!isJson(request)) return { status: 415, message: 'Content-Type is not application/json.' };
  return undefined;
}

function hostIn(origin: string): string | undefined {
  return URL.canParse(origin) ? new URL(origin).host : undefined;
}
