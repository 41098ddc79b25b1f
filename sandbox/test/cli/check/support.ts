import { spawn } from 'node:child_process';
import { appendFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { IncomingMessage, RequestListener } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import express from 'express';
import { expect, onTestFinished } from 'vitest';
import { memoryStore, transferCallbackRouter, type TransferCallback } from 'transfer-callbacks';
import { objects, runSandboxCli as run } from '../../../../test/cli/support.js';
import { serve } from '../../../../test/support/servers/serve.js';
import { rows } from '../../../src/cli/check/rows.js';

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

export const serveHere = async (listener: RequestListener): Promise<string> => {
  const { url, close } = await serve(listener);
  onTestFinished(close);
  return url;
};

export const withRouter = (options: object): Promise<string> =>
  serveHere(
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

/** Serves a route by hand, which responds 200 unless `handle` resolves with another status, or 500 if it rejects. */
export const byHand = (handle: (callback: TransferCallback) => Promise<number | undefined>): Promise<string> =>
  serveHere((request, response) => {
    readText(request)
      .then((body) => handle(JSON.parse(body) as TransferCallback))
      .then(
        (status = 200) => response.writeHead(status).end(),
        () => response.writeHead(500).end(),
      );
  });

/** Starts one of `endpoints` as a process. Its books and payouts are files of `folder`. */
export async function startEndpoint(
  name: string,
  folder: string,
  env: Readonly<Record<string, string>> = {},
): Promise<{ url: string; ledger: string; payouts: string }> {
  const file = fileURLToPath(new URL(`endpoints/${name}`, import.meta.url));
  const [ledger, payouts] = [join(folder, 'books'), join(folder, 'payouts')];
  await Promise.all([ledger, payouts].map((path) => writeFile(path, '')));
  const child = spawn(name.endsWith('.py') ? 'python3' : process.execPath, [file], {
    env: { ...process.env, LEDGER: ledger, PAYOUTS: payouts, TOKEN: 'the-token', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill());
  for await (const line of createInterface(child.stdout)) return { url: line, ledger, payouts };
  return expect.fail(`${name} has ended.`);
}

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

export async function checkLoudly(url: string, ...args: string[]) {
  const { code, out, err } = await run('check', '--to', url, '--json', ...args);
  return { err, ...toChecked(code, objects(out)) };
}

/** What a check has printed. */
export function toChecked(code: unknown, lines: readonly unknown[]) {
  const trials = (lines as Trial[]).filter(({ name }) => name);
  const named = (verdict: string) => trials.filter((each) => each.verdict === verdict).map(({ name }) => name);
  return {
    code,
    /** What no row shows, and why nothing could be seen. */
    result: (lines as Result[]).find(({ type }) => type === 'result'),
    wrong: named('wrong'),
    less: named('less strict'),
    unseen: named('not seen'),
    trial: (name: string) => trials.find((each) => each.name === name),
  };
}
