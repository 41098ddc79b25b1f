import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { access, chmod, constants, mkdir, mkdtemp, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { basename, delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);

interface Output {
  readonly stderr: string;
}

/** A program that is unpacked out of Debian's packages where the machine has none. */
export interface DebianProgram {
  readonly name: string;
  /** Where its package has it. */
  readonly path: string;
  /** Where its package has other programs that are needed. They are started by their names, beside `run`. */
  readonly others?: readonly string[];
  /** Its package. It is downloaded with the packages of libraries that it needs, unless it `isAlone`. */
  readonly package: string;
  readonly isAlone?: boolean;
  /** Packages that it is said to need, but does not. */
  readonly without?: readonly string[];
  /**
   * The release that has it, if the machine's own has not. It brings a C library with it. Default the machine's own.
   */
  readonly release?: 'sid';
  readonly megabytes: number;
}

/** The keys that sign Debian's releases. Ubuntu has them as a package. */
const debianKeys = '/usr/share/keyrings/debian-archive-keyring.gpg';

/** Where unpacked programs are kept. A program's folder is there complete or not at all. */
export const cache =
  process.env.TEST_PROGRAMS ??
  fileURLToPath(new URL('../../../node_modules/.cache/transfer-callbacks', import.meta.url));

/** A program that tests need. */
interface Needed {
  /** What it is, for the error, and how to get it where it cannot be unpacked. */
  readonly what: string;
  readonly howToGetIt: string;
  /** The variable of the environment that may have its path. */
  readonly variable?: string;
  /** Its names on the PATH. */
  readonly names?: readonly string[];
  /** Whether a program of such a name is the right one. Default: it is. */
  readonly isRight?: (path: string) => Promise<boolean>;
  readonly debian: DebianProgram;
}

/** Resolves with the path of a program that tests need. Rejects with how to get it. */
export async function findNeeded(needed: Needed): Promise<string> {
  const { what, howToGetIt, variable = '', names = [], isRight, debian } = needed;
  const given = process.env[variable];
  if (given) return given;
  const onPath = await findOnPath(...names);
  if (onPath !== undefined && (isRight === undefined || (await isRight(onPath)))) return onPath;
  const unpacked = await findUnpacked(debian);
  if (unpacked !== undefined) return unpacked;
  throw new Error(`The tests need ${what}, and this machine has none: ${howToGetIt}`);
}

/** Resolves with the path of the first of these programs that is on the PATH. */
export async function findOnPath(...names: string[]): Promise<string | undefined> {
  const suffix = process.platform === 'win32' ? '.exe' : '';
  for (const name of names) {
    for (const folder of (process.env.PATH ?? '').split(delimiter)) {
      const path = join(folder, name + suffix);
      if (await isExecutable(path)) return path;
    }
  }
  return undefined;
}

export async function isExecutable(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * Resolves with the path of a program out of Debian's packages. Unpacks them when it is first called on this machine,
 * which needs no root. Resolves with `undefined` where there is no Debian.
 */
export async function findUnpacked(program: DebianProgram): Promise<string | undefined> {
  const { name, release, megabytes } = program;
  const folder = join(cache, name);
  const path = join(folder, 'run');
  if (await isComplete(program, folder)) return path;
  if ((await findOnPath('apt-get')) === undefined || (await findOnPath('dpkg-deb')) === undefined) return undefined;
  if (release !== undefined && !existsSync(debianKeys)) return undefined;

  console.error(`No ${name} here: unpacking Debian's (${megabytes} MB, and the lists of packages), once.`);
  try {
    await mkdir(cache, { recursive: true });
    const workshop = await mkdtemp(join(cache, 'unpacking-'));
    try {
      await place(program, await unpack(program, workshop), folder);
    } finally {
      await rm(workshop, { recursive: true, force: true });
    }
  } catch (error) {
    throw new Error(
      `No ${name} is on the PATH, and Debian's cannot be unpacked (${(error as Error).message}): ` +
        `install ${name}, or try again when the mirror of packages responds to \`apt-get update\`.`,
      { cause: error },
    );
  }
  return path;
}

/** Moves a program to its folder. Another run may have done so meanwhile: then that run's stays. */
async function place(program: DebianProgram, unpacked: string, folder: string): Promise<void> {
  if (!(await isComplete(program, unpacked))) throw new Error('it does not start');
  try {
    await rename(unpacked, folder);
  } catch {
    if (await isComplete(program, folder)) return;
    await rm(folder, { recursive: true, force: true });
    await rename(unpacked, folder);
  }
}

async function isComplete({ others = [] }: DebianProgram, folder: string): Promise<boolean> {
  for (const starter of ['run', ...others.map((path) => basename(path))]) {
    if (!(await starts(join(folder, starter)))) return false;
  }
  return true;
}

async function starts(path: string): Promise<boolean> {
  try {
    await run(path, ['--version']);
    return true;
  } catch {
    return false;
  }
}

/** Resolves with a folder that has the program, its libraries, and `run`, which starts it. */
async function unpack(program: DebianProgram, workshop: string): Promise<string> {
  const { name, path, others = [], isAlone = false, without = [], release } = program;
  const lists = join(workshop, 'lists');
  const downloads = join(workshop, 'cache', 'archives');
  const unpacked = join(workshop, 'unpacked');
  for (const folder of [join(lists, 'partial'), join(downloads, 'partial'), unpacked]) {
    await mkdir(folder, { recursive: true });
  }
  // As root, apt downloads as the user `_apt`, which must be able to reach the folder.
  await chmod(workshop, 0o755);
  // With no package installed apt downloads every library. The C library of the same release must be the machine's own,
  // and `adduser` serves only an installation.
  const status = join(workshop, 'status');
  const present = ['adduser', ...(release === undefined ? ['libc6'] : []), ...without];
  await writeFile(status, present.map(installed).join('\n'));
  const sources = join(workshop, 'sources.list');
  await writeFile(sources, `deb [signed-by=${debianKeys}] http://deb.debian.org/debian ${release} main\n`);
  const settings = {
    'Dir::State': workshop,
    'Dir::State::lists': lists,
    'Dir::State::status': status,
    'Dir::Cache': join(workshop, 'cache'),
    // There is nothing to lock: all of these folders belong to this run.
    'Debug::NoLocking': '1',
    'Acquire::Languages': 'none',
    'Acquire::Retries': '1',
    'Acquire::http::Timeout': '20',
    'Acquire::https::Timeout': '20',
    ...(release === undefined ? {} : { 'Dir::Etc::sourcelist': sources, 'Dir::Etc::sourceparts': '-' }),
  };
  const options = Object.entries(settings).flatMap(([setting, value]) => ['-o', `${setting}=${value}`]);
  // It may report a mirror of something else that does not respond. What is to be downloaded may be there anyway.
  const update = await run('apt-get', ['-qq', ...options, 'update']).catch((error: unknown) => error as Output);
  const download = isAlone ? ['download'] : ['--yes', '--download-only', '--no-install-recommends', 'install'];
  try {
    await run('apt-get', ['-qq', ...options, ...download, program.package], { cwd: downloads });
  } catch (error) {
    const reason = findReason(update.stderr) ?? findReason((error as Output).stderr);
    throw new Error(reason ?? (error as Error).message, { cause: error });
  }
  for (const file of await readdir(downloads)) {
    if (file.endsWith('.deb')) await run('dpkg-deb', ['--extract', join(downloads, file), unpacked]);
  }
  // A Redis looks at the name that it is started by.
  await symlink(path, join(unpacked, name));
  await writeStarter(unpacked, 'run', name);
  for (const other of others) await writeStarter(unpacked, basename(other), other);
  return unpacked;
}

function installed(name: string): string {
  return (
    `Package: ${name}\nStatus: install ok installed\nVersion: 999\nArchitecture: all\nMulti-Arch: allowed\n` +
    'Maintainer: none\nDescription: none\n'
  );
}

/** Writes the script that starts a program with its libraries. It replaces itself: the process keeps its id. */
async function writeStarter(folder: string, starter: string, path: string): Promise<void> {
  const libraries = await find(folder, ['lib', 'usr/lib'], '-linux-gnu');
  // A C library works only with the loader of its own release.
  const [loader] = await find(folder, ['usr/lib', 'usr/lib64'], 'ld-linux-');
  const script = [
    '#!/bin/sh',
    'here=${0%/*}',
    ...(loader === undefined
      ? [`export LD_LIBRARY_PATH="${libraries.join(':')}"`, `exec "$here/${path}" "$@"`]
      : [`exec "${loader}" --library-path "${libraries.join(':')}" "$here/${path}" "$@"`]),
    '',
  ].join('\n');
  await writeFile(join(folder, starter), script, { mode: 0o755 });
}

/** Finds what has this in its name, in some folders of unpacked packages. */
async function find(folder: string, parents: readonly string[], part: string): Promise<string[]> {
  const found: string[] = [];
  for (const parent of parents) {
    const names = await readdir(join(folder, parent)).catch(() => []);
    found.push(...names.filter((name) => name.includes(part)).map((name) => `$here/${parent}/${name}`));
  }
  return found;
}

/** Returns what apt says that it could not fetch, or else its first error. */
function findReason(stderr: string): string | undefined {
  const [, line] = /^[EW]: (Failed to fetch .*)$/m.exec(stderr) ?? /^E: (.*)$/m.exec(stderr) ?? [];
  return line?.replace(/\s+/g, ' ').replace(/\.$/, '');
}
