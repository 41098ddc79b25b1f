import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, vi } from 'vitest';
import { findBlocks, findPage } from '../docs/pages.js';
import { hasEnded, kill, tied } from '../support/programs/child.js';
import { freePort, isListening } from '../support/servers/port.js';
import type { PostgresServer } from '../support/servers/postgres.js';
import { stepMs } from './support.js';

const readme = findPage('README.md');
const [{ code } = expect.fail('The README shows no code.')] = findBlocks(readme, 'ts');

/** The commands of the README, in their order. */
const commands = findBlocks(readme, 'sh').flatMap((block) => block.code.trimEnd().split('\n'));

/** Returns the command of the README that begins with these words. */
export const findCommand = (words: string): string =>
  commands.find((command) => command.startsWith(words)) ?? expect.fail(`The README has no command ${words}.`);

/** The packages of the README's `npm install`. */
export const packages = findCommand('npm install').split(' ').slice(2);

/** The README's own example of a secret. */
export const secret = findCommand('export CALLBACK_SECRET=').replace(/.*=/, '');

/** Starts the code of the README, as it is printed, in the folder of an app. Resolves when it listens. */
export async function startQuickStart(app: string, database: string) {
  await writeFile(join(app, 'server.mjs'), code);
  const port = await freePort();
  const env = { ...process.env, PORT: String(port), DATABASE_URL: database, CALLBACK_SECRET: secret };
  const [program = '', file = ''] = findCommand('node server.mjs').split(' ');
  const server = tied(spawn(program, [file], { cwd: app, env, stdio: ['ignore', 'ignore', 'pipe'] }));
  let printed = '';
  server.stderr.setEncoding('utf8').on('data', (text: string) => (printed += text));
  await vi.waitUntil(async () => hasEnded(server) || (await isListening(port)), { timeout: stepMs / 4 });
  expect(hasEnded(server), printed).toBe(false);
  return { port, url: `http://localhost:${port}/callbacks/transfers/${secret}`, stop: () => kill(server) };
}

/** Resolves with the transfers that the code of the README has booked, each as often as it was booked. */
export async function readBookings(postgres: PostgresServer): Promise<string[]> {
  const { rows } = await postgres.pool().query<{ payout: string }>('SELECT payout FROM ledger');
  return rows.map(({ payout }) => payout);
}
