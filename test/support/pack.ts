import { execFile } from 'node:child_process';
import { cp, mkdir, readdir, symlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

declare module 'vitest' {
  export interface ProvidedContext {
    /** The file of the package, as it would be published. */
    tarball: string;
  }
}

const repository = fileURLToPath(new URL('../..', import.meta.url));
const leftOut = new Set(['node_modules', '.git', '.test', '.next', 'dist', 'coverage']);

/** Packs a copy, so that building it leaves the `dist` of the working tree alone. Returns the tarball, which is in `folder`. */
export async function pack(folder: string): Promise<string> {
  const copy = join(folder, 'repository');
  await mkdir(copy, { recursive: true });
  for (const name of await readdir(repository)) {
    const filter = (path: string): boolean => !leftOut.has(basename(path));
    await cp(join(repository, name), join(copy, name), { recursive: true, filter });
  }
  await symlink(join(repository, 'node_modules'), join(copy, 'node_modules'));
  await promisify(execFile)('npm', ['pack', '--pack-destination', folder], { cwd: copy });
  const packed = (await readdir(folder)).find((path) => path.endsWith('.tgz'));
  if (packed === undefined) throw new Error('`npm pack` has made no tarball.');
  return join(folder, packed);
}
