import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { inject } from 'vitest';

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
export const oldest = { express: '4.18.0', types: '4.17.21', zod: '4.0.0' } as const;

export const installed = async (name: string): Promise<string> =>
  (await readJson<Manifest>(join(repository, 'node_modules', name, 'package.json'))).version;

/** The least that the peer ranges allow, and the newest that this repository has been tested with. */
export const roots = [
  { title: 'the oldest peers', ...oldest },
  {
    title: 'Express 4',
    express: await installed('express4'),
    types: await installed('@types/express4'),
    zod: await installed('zod'),
  },
  {
    title: 'Express 5',
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

/** Makes the folder of a project with the package and its peers. */
export async function installIn(workshop: string, project: (typeof roots)[number]): Promise<void> {
  const { folder, express, types, zod } = project;
  const root = join(workshop, folder);
  await cp(join(here, 'projects'), root, { recursive: true });
  const dependencies = {
    [packageName]: `file:${inject('tarball')}`,
    express,
    zod,
    '@types/express': types,
    '@types/node': await installed('@types/node'),
  };
  await install(root, { dependencies });
}

/** Runs a program to its end and returns what it printed; if it fails, so does the test, with all of its output. */
export async function run(file: string, args: string[], cwd: string, env: NodeJS.ProcessEnv = {}): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)(file, args, {
      cwd,
      env: { ...process.env, NODE_OPTIONS: '', ...env },
      timeout: stepMs / 2,
      killSignal: 'SIGKILL',
      maxBuffer: 16 * 1024 * 1024,
    });
    return stdout;
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    throw new Error(`${file} ${args.join(' ')} failed in ${cwd}:\n${stdout}\n${stderr}`, { cause: error });
  }
}

export async function readJson<T>(path: string): Promise<T> {
  return JSON.parse(await readFile(path, 'utf8')) as T;
}
