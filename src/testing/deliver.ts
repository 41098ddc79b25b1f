import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { invalidOption, onlyKnownOptions, wholeNumber } from '../core/errors.js';
import { attemptCallback, attemptsPerCallback, isAcknowledgement, type AttemptAnswer } from '../sandbox/attempt.js';
import { baseUrlAt } from '../sandbox/options.js';

export interface DeliverOptions {
  /** Where in the app the callbacks go, as in `callbackUrl`: with the token, if there is one. Default `/`, or the URL. */
  path?: string | undefined;
  /** How often the callback is delivered; the service may do so more than once (service §6.2). Default 1. */
  copies?: number | undefined;
  /** Whether the copies go out at the same time, or each when the one before has ended. Default false. */
  concurrent?: boolean | undefined;
  /** Whether a copy that is not acknowledged is sent again, up to 4 attempts in all (service §6.3). Default true. */
  retry?: boolean | undefined;
  /** The pause before the first retry, in milliseconds, doubled for each after it. Default 0: tests do not wait 30 s. */
  retryPauseMs?: number | undefined;
}

export interface Delivered {
  /** Whether each copy was answered with a 2xx in the end. */
  acknowledged: boolean;
  /** What each attempt was answered, copy by copy: a status, or why none came. */
  answers: (number | string)[];
}

/**
 * Delivers a callback as the service does (service §6): the same bytes on each attempt, until one is answered with a
 * 2xx or the fourth is not. `target` is what supertest takes (an app, a request listener, a server) or a URL. A string
 * is sent as it stands, anything else as JSON. Rejects with INVALID_OPTION only: that nobody answers is an answer.
 */
export async function deliver(
  target: RequestListener | Server | string | URL,
  callback: unknown,
  options: DeliverOptions = {},
): Promise<Delivered> {
  onlyKnownOptions(options, ['path', 'copies', 'concurrent', 'retry', 'retryPauseMs']);
  const { path = '', copies = 1, concurrent = false, retry = true, retryPauseMs = 0 } = options;
  wholeNumber('copies', copies, 1);
  wholeNumber('retryPauseMs', retryPauseMs, 0);
  const body = textOf(callback);
  const { base, close } = await addressOf(target);
  try {
    const url = urlAt(path, base);
    const send = (): Promise<AttemptAnswer[]> => deliverOnce(url, body, retry, retryPauseMs);
    const delivered: AttemptAnswer[][] = [];
    if (concurrent) delivered.push(...(await Promise.all(Array.from({ length: copies }, send))));
    else while (delivered.length < copies) delivered.push(await send());
    return {
      acknowledged: delivered.every((answers) => answers.some(isAcknowledgement)),
      answers: delivered.flat().map((answer) => ('status' in answer ? answer.status : answer.error)),
    };
  } finally {
    await close();
  }
}

async function deliverOnce(url: string, body: string, retry: boolean, pauseMs: number): Promise<AttemptAnswer[]> {
  const answers: AttemptAnswer[] = [];
  for (let attempt = 0; attempt < (retry ? attemptsPerCallback : 1); attempt += 1) {
    if (attempt > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs * 2 ** (attempt - 1)));
    const answer = await attemptCallback(url, body);
    answers.push(answer);
    if (isAcknowledgement(answer)) break;
  }
  return answers;
}

/** Where the target listens; an app that does not listen yet does so until it is closed. */
async function addressOf(target: unknown): Promise<{ base: string; close: () => Promise<unknown> }> {
  if (typeof target === 'string' || target instanceof URL) {
    if (!URL.canParse(String(target))) throw invalidOption('target', 'an app, a server or a URL', target);
    return { base: String(target), close: () => Promise.resolve() };
  }
  const given = isServer(target) ? target : undefined;
  if (given?.listening) return { base: urlOf(given), close: () => Promise.resolve() };
  if (given === undefined && typeof target !== 'function') {
    throw invalidOption('target', 'an app, a server or a URL', target);
  }
  const server = given ?? createServer(target as RequestListener);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = async (): Promise<void> => {
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
  };
  return { base: urlOf(server), close };
}

function textOf(callback: unknown): string {
  if (typeof callback === 'string') return callback;
  let text: string | undefined;
  try {
    text = JSON.stringify(callback);
  } catch {
    // It refers to itself, or holds a bigint.
  }
  if (text === undefined) throw invalidOption('callback', 'a text or a value of JSON', callback);
  return text;
}

/** Of the target's own origin: a path that is a URL of its own would lead to somebody else. */
function urlAt(path: string, base: string): string {
  const url = URL.canParse(path, base) ? new URL(path, base) : undefined;
  if (url?.origin !== new URL(base).origin) throw invalidOption('path', 'a path of the target', path);
  return url.href;
}

function isServer(target: unknown): target is Server {
  return typeof (target as Partial<Server> | null)?.listen === 'function' && typeof target !== 'function';
}

function urlOf(server: Server): string {
  const { address, port } = server.address() as AddressInfo;
  return baseUrlAt(address, port);
}
