import { spawn } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, vi } from 'vitest';
import { findBlocks, findPage } from '../docs/pages.js';
import { hasEnded, kill, tied } from '../support/programs/child.js';
import { freePort, isListening } from '../support/servers/port.js';
import { stepMs } from './support.js';

const readme = findPage('README.md');
const stores = findPage('docs/stores.md');

/** Returns the app that a page prints on a store: of the README, and of docs/stores.md for Redis. */
export const findApp = (store: 'memory' | 'pg' | 'redis'): string =>
  findBlocks(store === 'redis' ? stores : readme, 'ts').find(
    ({ code }) => code.includes(`${store}Store(`) && code.includes('express()'),
  )?.code ?? expect.fail(`There is no app on ${store}Store.`);

/** Returns the app of the README for a service by its name. */
export const findServiceApp = (): string =>
  findBlocks(readme, 'ts').find(({ code }) => code.includes('defineService('))?.code ??
  expect.fail('The README has no app with a definition.');

/** The commands of the README, in their order. */
const commands = findBlocks(readme, 'sh').flatMap((block) => block.code.trimEnd().split('\n'));

/** Returns the command of the README that begins with these words. */
export const findCommand = (words: string): string =>
  commands.find((command) => command.startsWith(words)) ?? expect.fail(`The README has no command ${words}.`);

/** The packages that the README installs for its apps. */
export const packages = [
  ...findCommand('npm install').split(' ').slice(2),
  ...[readme, stores].flatMap(({ text }) => [...text.matchAll(/`npm install ([a-z]+)`/g)]).map(([, name = '']) => name),
];

/** Returns the command of the README that checks an app, at this port, with the count by `program` if one is given. */
export function findCheck(port: number, program?: 'psql' | 'redis-cli'): string {
  const check = findCommand('npx transfer-sandbox check').replace(':3000/', `:${port}/`);
  if (program === undefined) return check;
  const counts = [readme, stores].flatMap(({ text }) => [...text.matchAll(/`(--count '[^`]+')`/g)]);
  const [, own = expect.fail(`There is no count by ${program}.`)] = counts.find(([all]) => all.includes(program)) ?? [];
  return check.replace(/--count '.*'/, () => own);
}

/** Returns the command of the README that checks the endpoint of a service by its name, at this port. */
export function findServiceCheck(port: number): string {
  const [{ code } = expect.fail('The README shows no check of a service.')] = findBlocks(readme, 'text');
  const command = code.split('\n✗')[0]?.replace(/^\$ CALLBACK_SECRET=\S+ /, '') ?? '';
  return command.replace(':3000/', `:${port}/`);
}

/** The README's own example of a secret. */
export const secret = findCommand('export CALLBACK_SECRET=').replace(/.*=/, '');

/** Starts an app of the README, as it is printed, in the folder of an app. Resolves when it listens. */
export async function startApp(folder: string, code: string, environment: NodeJS.ProcessEnv = {}) {
  await writeFile(join(folder, 'server.mjs'), code);
  const port = await freePort();
  const env = { ...process.env, ...environment, PORT: String(port), CALLBACK_SECRET: secret };
  const command = findCommand('node server.mjs').replace(/ &$/, '');
  const server = tied(spawn('bash', ['-c', `exec ${command}`], { cwd: folder, env, stdio: 'ignore' }));
  await vi.waitUntil(async () => hasEnded(server) || (await isListening(port)), { timeout: stepMs / 4 });
  expect(hasEnded(server), await readFile(join(folder, 'log.txt'), 'utf8')).toBe(false);
  return { port, url: `http://localhost:${port}/callbacks/transfers/${secret}`, stop: () => kill(server) };
}

/** Resolves with the lines that the first app of the README has printed. */
export async function readLedger(folder: string): Promise<string[]> {
  const text = await readFile(join(folder, 'ledger.txt'), 'utf8');
  return text.split('\n').slice(0, -1);
}
