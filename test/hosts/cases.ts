import { transferSucceeded } from 'transfer-callbacks/testing';
import { post, type Sent } from '../support/helpers/post.js';

/** The secret that examples/hosts/options.ts reads from the environment. */
export const token = 'the-token-of-the-tests-of-hosts';

/** What the listener and the other hosts must agree in. */
export interface Reply {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly allow: string | undefined;
  readonly body: string;
}

export interface Case {
  /** What the request is, as the page shows it. */
  readonly name: string;
  /** Sends the request to the URL. */
  readonly send: (url: string) => Promise<Reply>;
}

const json = (data: Parameters<typeof transferSucceeded>[0]): string => JSON.stringify(transferSucceeded(data));
/** More than `bodyLimitBytes` is by default, though a correct callback. */
const long = json({ id: 'long', reference: 'a'.repeat(150_000) });
const halves = (text: string): string[] => [text.slice(0, text.length / 2), text.slice(text.length / 2)];
const fresh = json({ id: 'fresh' });

/** In this order: a duplicate comes after its callback. */
export const cases: readonly Case[] = [
  { name: 'callback', send: (url) => send(url, fresh) },
  { name: 'duplicate', send: (url) => send(url, fresh) },
  {
    name: 'in chunks',
    send: (url) => send(url, '', { chunks: halves(json({ id: 'in-chunks' })) }),
  },
  { name: 'not JSON', send: (url) => send(url, '{') },
  {
    name: 'forged',
    send: (url) => send(url, json({}), { headers: { 'X-Callback-Token': 'a-guess' } }),
  },
  { name: 'too long', send: (url) => send(url, long) },
  {
    name: 'too long, in chunks',
    send: (url) => send(url, '', { chunks: halves(long) }),
  },
  {
    name: 'plain text',
    send: (url) => send(url, json({}), { headers: { 'Content-Type': 'text/plain' } }),
  },
  { name: 'PUT', send: (url) => send(url, json({}), { method: 'PUT' }) },
  { name: 'handler fails', send: (url) => send(url, json({ id: 'handler-fails' })) },
  { name: 'store down', send: (url) => send(url, json({ id: 'store-down' })) },
];

async function send(url: string, body: string, { headers = {}, ...sent }: Sent = {}): Promise<Reply> {
  // Cloudflare tells a Worker the address of the sender, and workerd alone does not.
  const all = { 'X-Callback-Token': token, 'CF-Connecting-IP': '127.0.0.1', ...headers };
  const { status, body: text, headers: received } = await post(url, body, { ...sent, headers: all });
  return { status, retryAfter: received['retry-after'], allow: received.allow, body: text };
}
