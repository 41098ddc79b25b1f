import { execFile, spawn } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, inject, vi } from 'vitest';
import { findBlocks, findPage } from '../docs/pages.js';
import { hasEnded, kill, tied } from '../support/programs/child.js';
import { freePort, isListening } from '../support/servers/port.js';

export interface Manifest {
  version: string;
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
  bundleDependencies?: unknown;
  peerDependencies: Record<string, string>;
  peerDependenciesMeta: Record<string, { optional?: boolean }>;
  exports: Record<string, unknown>;
  scripts: Record<string, string>;
}

export const packageName = 'transfer-callbacks';
const here = dirname(fileURLToPath(import.meta.url));
export const repository = dirname(dirname(here));
/** Ends what hangs. Two files install at the same time, on a busy machine. */
export const stepMs = 600_000;

/** The least that the peer ranges allow. */
export const oldest = { express: '4.18.0', types: '4.17.21', zod: '3.25.1' } as const;

export const installed = async (name: string): Promise<string> =>
  (await readJson<Manifest>(join(repository, 'node_modules', name, 'package.json'))).version;

/** The least that the peer ranges allow, and the newest that this repository has been tested with. */
export const roots = [
  { title: 'the oldest peers', ...oldest },
  {
    title: 'the newest peers',
    express: await installed('express'),
    types: await installed('@types/express'),
    zod: await installed('zod'),
  },
].map((root, index) => ({ ...root, folder: `root-${index}` }));

/** Makes a folder for the projects that install the tarball. */
export const makeWorkshop = (): Promise<string> => mkdtemp(join(tmpdir(), 'transfer-callbacks-package-'));

/** Installs these dependencies in the folder of a project, and nothing that they do not require. */
export async function install(root: string, manifest: { type?: string; dependencies: object }): Promise<void> {
  await writeFile(join(root, 'package.json'), JSON.stringify({ private: true, ...manifest }));
  await run('npm', ['install', '--no-audit', '--no-fund', '--prefer-offline', '--no-package-lock'], root);
}

/** The entries of an installed package, such as `transfer-callbacks/client`. */
export async function readEntries(root: string): Promise<string[]> {
  const { exports } = await readJson<Manifest>(join(root, 'node_modules', packageName, 'package.json'));
  const paths = Object.keys(exports).filter((path) => path !== './package.json');
  return paths.map((path) => packageName + path.slice(1));
}

/**
 * Makes the folder of a project with the package and its peers. Its sources are there as ES modules and as CommonJS.
 */
export async function installIn(workshop: string, project: (typeof roots)[number]): Promise<void> {
  const { folder, express, types, zod } = project;
  const root = join(workshop, folder);
  await mkdir(root);
  const dependencies = {
    [packageName]: `file:${inject('tarball')}`,
    express,
    zod,
    '@types/express': types,
    '@types/node': await installed('@types/node'),
  };
  await install(root, { dependencies });
  const all = (await readEntries(root)).map((entry) => `  typeof import('${entry}'),\n`);
  await cp(join(here, 'projects', 'tsconfig.json'), join(root, 'tsconfig.json'));
  for (const ending of ['mts', 'cts']) {
    await cp(join(here, 'projects', 'main.ts'), join(root, `main.${ending}`));
    await cp(join(here, 'projects', 'exports.ts'), join(root, `exports.${ending}`));
    await writeFile(join(root, `entries.${ending}`), `export type Entries = [\n${all.join('')}];\n`);
  }
}

/**
 * Compiles a project and returns the faults that the compiler finds in it and in the package. Leaves out those in the
 * declarations of zod: no compiler accepts those of 3.25.1.
 */
export async function compile(project: string, compiler: string, ...options: string[]): Promise<string[]> {
  const file = join(compiler, 'bin', 'tsc');
  const args = [file, '--project', '.', '--pretty', 'false', ...options];
  const { code, stdout, stderr } = await start(process.execPath, args, project);
  const faults = stdout.split('\n').filter((line) => line.includes(': error TS'));
  if (code !== 0 && faults.length === 0) throw new Error(`${file} failed in ${project}:\n${stdout}\n${stderr}`);
  return faults.filter((fault) => !/\bnode_modules\/zod\/.*: error/.test(fault));
}

/** Runs a program to its end and returns what it printed; if it fails, so does the test, with all of its output. */
export async function run(file: string, args: string[], cwd: string, env: NodeJS.ProcessEnv = {}): Promise<string> {
  const { code, stdout, stderr } = await start(file, args, cwd, env);
  if (code !== 0) throw new Error(`${file} ${args.join(' ')} failed in ${cwd} (${code}):\n${stdout}\n${stderr}`);
  return stdout;
}

interface Ended {
  /** The exit code, or else the error or the signal that ended the program. */
  code: string | number;
  stdout: string;
  stderr: string;
}

/** Runs a program to its end. */
export async function start(file: string, args: string[], cwd: string, env: NodeJS.ProcessEnv = {}): Promise<Ended> {
  const options = {
    cwd,
    env: { ...process.env, NODE_OPTIONS: '', ...env },
    timeout: stepMs / 2,
    killSignal: 'SIGKILL',
    maxBuffer: 16 * 1024 * 1024,
  } as const;
  return new Promise((resolve) => {
    execFile(file, args, options, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : (error.code ?? error.signal ?? error.message), stdout, stderr });
    });
  });
}

export async function readJson<T>(path: string): Promise<T> {
  return JSON.parse(await readFile(path, 'utf8')) as T;
}

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
const findCommand = (words: string): string =>
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
