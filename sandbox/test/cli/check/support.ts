import { appendFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import express from 'express';
import { expect, onTestFinished } from 'vitest';
import { memoryStore, transferCallbackRouter, type TransferCallback } from 'transfer-callbacks';
import { objects, startSandboxCli as start, type Surroundings } from '../../../../test/cli/support.js';
import { rows } from '../../../src/cli/check/rows.js';
import { serveForTest } from '../../../../test/support/servers/serve-for-test.js';

interface Booked {
  readonly externalId: string;
  readonly status: 'SUCCESS' | 'FAILED' | 'REVERSED';
}

export type Book = (callback: { data: Booked }) => Promise<void>;

/** Books of an app, and the commands with which its user counts, breaks and mends them. */
export async function makeBooks() {
  const folder = await mkdtemp(join(tmpdir(), 'transfer-sandbox-check-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  // They are moved in one step: what is booked between two would be lost, and not by the app.
  const [open, away] = [join(folder, 'open'), join(folder, 'away')];
  const ledger = join(open, 'ledger');
  await mkdir(open);
  await writeFile(ledger, '');
  const book: Book = async ({ data }) => appendFile(ledger, `${data.externalId} ${data.status}\n`);
  const count = ['--count', `grep -c "^$ID $STATUS$" ${ledger}`];
  const breaking = ['--break', `mv ${open} ${away}`];
  const mending = ['--mend', `mv ${away} ${open}`];
  return { folder, ledger, book, count, commands: [...count, ...breaking, ...mending] };
}

export const withRouter = (options: object): Promise<string> =>
  serveForTest(
    express().use(
      transferCallbackRouter({ store: memoryStore(), logger: false, ...options } as Parameters<
        typeof transferCallbackRouter
      >[0]),
    ),
  );

export async function readText(request: IncomingMessage): Promise<string> {
  let body = '';
  for await (const chunk of request.setEncoding('utf8') as AsyncIterable<string>) body += chunk;
  return body;
}

/**
 * Serves a route by hand. `handle` returns the status for a body: 200 if it returns none, and 500 if it fails. It may end the response
 * itself.
 */
export const serveBodies = (
  handle: (
    body: string,
    request: IncomingMessage,
    response: ServerResponse,
  ) => Promise<number | undefined> | number | undefined,
): Promise<string> =>
  serveForTest((request, response) => {
    readText(request)
      .then((body) => handle(body, request, response))
      .then(
        (status = 200) => response.headersSent || response.writeHead(status).end(),
        () => response.writeHead(500).end(),
      );
  });

/** Serves a route by hand for callbacks of the documented service. */
export const byHand = (handle: (callback: TransferCallback) => Promise<number | undefined>): Promise<string> =>
  serveBodies((body) => handle(JSON.parse(body) as TransferCallback));

/** Serves an endpoint without a verifier. `read` returns what to book, under which name; `undefined` acknowledges only. */
export function serveAny(
  book: Book,
  read: (payload: never) => readonly [name: string, id: string, status: string] | number | undefined,
): Promise<string> {
  const seen = new Set<string>();
  return serveBodies(async (body) => {
    const found = read(JSON.parse(body) as never);
    if (found === undefined || typeof found === 'number') return found;
    const [name, externalId, status] = found;
    if (seen.has(name + status)) return 200;
    seen.add(name + status);
    await book({ data: { externalId, status: status as 'SUCCESS' } });
    return 200;
  });
}

/** Writes files into a folder: a text as it is, and all else as JSON. */
export const writeFiles = (folder: string, files: Readonly<Record<string, unknown>>) =>
  Promise.all(
    Object.entries(files).map(([name, content]) =>
      writeFile(join(folder, name), typeof content === 'string' ? content : JSON.stringify(content)),
    ),
  );

/** A careful reader's own validation. */
export function isWhole({ event, data }: TransferCallback): boolean {
  const known = { 'transfer.success': 'SUCCESS', 'transfer.failed': 'FAILED' }[event];
  return typeof data.id === 'string' && data.status === known;
}

interface Result {
  readonly type: string;
  readonly unseen: readonly string[];
  readonly missing?: string;
  readonly advice?: string;
}

interface Trial {
  readonly name: string;
  readonly responses: readonly string[];
  readonly verdict: string;
  readonly because: readonly string[];
  readonly notes: readonly string[];
  readonly bookings?: number;
  readonly ids: readonly string[];
  readonly said: readonly string[];
}

/** Rows that a service cannot play, by why. */
export const gaps = {
  reversal: ['reversed', 'reversed-burst', 'reversed-first', 'success-again', 'failed-reversed'],
  pending: ['pending'],
  events: ['foreign-event'],
  timestamp: ['old-timestamp'],
  form: ['other-spelling', 'list'],
  amount: ['other-amount'],
  signature: ['forged', 'forged-first'],
  /** Of a definition, which tells nothing of these. */
  definition: ['wrong-content-type', 'undocumented'],
};

/** Returns names of rows in the order of the table. */
export function inOrder(...names: readonly string[]): string[] {
  return rows.map(({ name }) => name).filter((name) => names.includes(name));
}

/** Returns the options that leave out every other row. The first one, and the one of --break, are always played. */
export function only(...names: readonly string[]): string[] {
  const others = rows.slice(1, -1).filter(({ name }) => !names.includes(name));
  return others.flatMap(({ name }) => ['--skip', name]);
}

/** Checks an endpoint. Nothing may be printed to standard error. */
export async function check(url: string, ...args: string[]) {
  const { err, ...checked } = await checkLoudly(url, ...args);
  expect(err).toBe('');
  return checked;
}

export const checkLoudly = (url: string, ...args: string[]) => checkIn({}, url, ...args);

/** Checks an endpoint with another environment, or in another folder. Resolves with what was printed. */
export async function checkIn(surroundings: Surroundings, url: string, ...args: readonly string[]) {
  const { code, out, err } = await start(['check', '--to', url, '--json', ...args], surroundings).ended;
  const lines = out === '' ? [] : objects(out);
  const trials = (lines as Trial[]).filter(({ name }) => name);
  const named = (verdict: string) => trials.filter((each) => each.verdict === verdict).map(({ name }) => name);
  return {
    ...{ code, err, origin: lines[0], plan: lines[1] },
    /** What no row shows, and why nothing could be seen. */
    result: (lines as Result[]).find(({ type }) => type === 'result'),
    wrong: named('wrong'),
    less: named('less strict'),
    unseen: named('not seen'),
    trial: (name: string) => trials.find((each) => each.name === name),
  };
}
