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

/** A request: what it is, as the page shows it, its body, and how it is sent. */
type Case = readonly [name: string, body: string, sent?: Sent];

const json = (data: Parameters<typeof transferSucceeded>[0]): string => JSON.stringify(transferSucceeded(data));
/** More than `bodyLimitBytes` is by default, though a correct callback. */
const long = json({ id: 'long', reference: 'a'.repeat(150_000) });
const halves = (text: string): string[] => [text.slice(0, text.length / 2), text.slice(text.length / 2)];
const fresh = json({ id: 'fresh' });

/** In this order: a duplicate comes after its callback. */
export const cases: readonly Case[] = [
  ['callback', fresh],
  ['duplicate', fresh],
  ['in chunks', '', { chunks: halves(json({ id: 'in-chunks' })) }],
  ['not JSON', '{'],
  ['forged', json({}), { headers: { 'X-Callback-Token': 'a-guess' } }],
  ['too long', long],
  ['too long, in chunks', '', { chunks: halves(long) }],
  ['plain text', json({}), { headers: { 'Content-Type': 'text/plain' } }],
  ['PUT', json({}), { method: 'PUT' }],
  ['handler fails', json({ id: 'handler-fails' })],
  ['store down', json({ id: 'store-down' })],
];

/** Sends the request of a case to a host. */
export async function send(url: string, [, body, { headers = {}, ...sent } = {}]: Case): Promise<Reply> {
  // Cloudflare tells a Worker the address of the sender, and workerd alone does not.
  const all = { 'X-Callback-Token': token, 'CF-Connecting-IP': '127.0.0.1', ...headers };
  const { status, body: text, headers: received } = await post(url, body, { ...sent, headers: all });
  return { status, retryAfter: received['retry-after'], allow: received.allow, body: text };
}
